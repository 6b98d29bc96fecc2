"""Tasks: each peer's private records and the questions one may ask them."""

from bruit.tasks.logistic import Logistic
from bruit.tasks.mean import Mean
from bruit.tasks.records import Records
from bruit.tasks.ridge import Ridge
from bruit.tasks.softmax import Softmax
from bruit.tasks.task import Constants, Task

__all__ = ["Constants", "Logistic", "Mean", "Records", "Ridge", "Softmax", "Task"]
