"""Personal models, everyone's own: the joint objective, private and learned collaboration, and what noise costs."""
