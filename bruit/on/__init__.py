"""Where many things are done: in this process, in several, or on a cluster of Ray; the same bits
everywhere.

    with br.on.chosen(br.on.Processes(4)):        # or on=... of whatever does many things
        run.summary()

Every draw has an address, so who does a thing, and how often it is begun again after somebody was
lost, changes no number.
"""

from bruit.on.names import named_place, place_for
from bruit.on.place import Workplace, chosen
from bruit.on.processes import Processes
from bruit.on.ray_place import Ray

__all__ = ["Processes", "Ray", "Workplace", "chosen", "named_place", "place_for"]
