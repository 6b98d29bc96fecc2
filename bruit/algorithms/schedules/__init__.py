"""Schedules: who speaks when. The record of each, and the machine by which a real peer keeps it."""
