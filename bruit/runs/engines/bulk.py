"""Bulk: all peers at once, as if messages were instantaneous.

The schedule plays (`Schedule.play`): rounds are one sparse product each, meetings are run by levels
of disjoint ones, a walk is a batch of one. Or the algorithm's own compiled path runs the whole of
it (`fused.py`).

`Bulk(copies=k)` runs k independent copies of the job as one batch, for audits and other statistics
(`Stage`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from bruit.algorithms.doorway import believed
from bruit.algorithms.schedules.stage import Stage
from bruit.errors import AlgorithmError, ConfigError
from bruit.runs.engines.engine import Engine, Job, Onlooker, Outcome, Stop
from bruit.runs.engines.fused import Fused
from bruit.runs.engines.given import check_given
from bruit.trace import Faults, Meetings, Trace


@dataclass(frozen=True)
class Bulk(Engine):
    """The vectorized simulator.

    `fused` = True runs the algorithm's own compiled path, or refuses; False never does. "auto", the
    default, takes it where it is equal to 1e-9, does all that was asked, and is worth it,
    and the general path elsewhere: the run's engine says which one ran.

    `copies` independent copies, the first of them number `first`, are one batch: states have copies
    * n rows, copy after copy, and what a watched peer received is one row per copy."""

    fused: bool | Literal["auto"] = "auto"
    copies: int = 1
    first: int = 0

    def __post_init__(self) -> None:
        if self.copies < 1 or self.first < 0:
            raise ConfigError(
                f"the bulk engine runs 1 copy or more, the first of them number 0 or later; found"
                f" copies = {self.copies}, first = {self.first}"
            )
        if self.fused not in (True, False, "auto"):
            raise ConfigError(f"fused is True, False or 'auto', found {self.fused!r}")
        if self.fused is True and self.copies * (1 + self.first) > 1:
            raise ConfigError(
                "a fused path runs one copy; leave out fused, or run the copies one after the other"
            )

    def describe(self) -> dict[str, Any]:
        several = (
            {"copies": self.copies, "first": self.first} if self.copies > 1 or self.first else {}
        )
        return {"name": "bulk", "fused": self.fused, **several}

    def execute(self, job: Job) -> Outcome:
        check_given(job)
        story = _BulkRun(job, self.copies, self.first)
        fused = self.fused is True or (self.fused == "auto" and story.compiled.fits())
        try:
            state = story.compiled.run(watched=self.fused == "auto") if fused else story.play()
        except Stop:
            outcome = story.stopped()
        except AlgorithmError as error:
            raise AlgorithmError(f"{error}; {story.so_far()}", error.call) from error.__cause__
        else:
            outcome = story.outcome(state)
        return replace(outcome, ran={"fused": fused})


class _BulkRun:
    """One bulk run in the making: the stage that its schedule plays on, and who looks at it."""

    def __init__(self, job: Job, copies: int, first: int) -> None:
        if copies > 1 and (job.states is not None or job.evaluate_every):
            raise ConfigError(
                "copies start anew and are not scored; run them without states, with "
                "evaluate_every = 0"
            )
        self.job, self.onlooker = job, Onlooker(job=job)
        faults = job.given.faults if job.given is not None else Faults.none()
        self.stage = Stage(
            algorithm=job.algorithm,
            graph=job.graph,
            steps=job.steps,
            door=job.door,
            public=job.public,
            trace=Trace(peers=job.n, steps=job.steps, faults=faults, watched=job.watch),
            meetings=Meetings.none(),
            look=self.look,
            reads=job.given.reads if job.given is not None else [],
            states=job.states,
            copies=copies,
            first=first,
        )
        self.compiled = Fused(job, self.stage)

    def play(self) -> Any:
        """The general path; the final states."""
        self.stage.meetings = self.job.meetings()
        return self.job.schedule.play(self.stage)

    def look(self, done: int, total: int, state: Any) -> None:
        """Score and report, as often as asked."""
        self.onlooker.look(done, total, lambda: believed(self.job.algorithm, state))

    def so_far(self) -> str:
        """How much is done: rounds, hops, meetings or wakes."""
        (_, done, total), schedule = self.stage.reached, self.job.schedule
        what = "meetings or wakes" if schedule.timed else schedule.unit
        return f"after {done} of {total} {what}" if total else "as the run began"

    def outcome(self, state: Any, stopped: tuple[int, int] | None = None) -> Outcome:
        stage, unwatched = self.stage, self.compiled.unwatched
        return Outcome(
            state=state,
            trace=stage.trace,
            metrics=self.onlooker.metrics,
            public=stage.public,
            unwatched=unwatched,
            stopped=stopped,
        )

    def stopped(self) -> Outcome:
        """What there is when somebody stops the run between two steps: exactly the steps that were
        done."""
        job, (state, done, total) = self.job, self.stage.reached
        self.stage.trace.meetings = self.stage.done()
        self.stage.trace.received.sort(key=lambda message: message.clock)
        self.onlooker.stopped(done, lambda: believed(job.algorithm, state))
        return self.outcome(state, (done, total))
