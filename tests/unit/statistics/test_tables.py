"""Questions to one table, asked from Python: the same law of paying and refusing as on the command
line."""

import random

import pytest

from bruit.accounts.account import beside
from bruit.errors import ConfigError, PrivacyError
from bruit.statistics.one_table import TableQuestion, auc_of_table, mean_of_table
from bruit.statistics.pooling import estimated
from bruit.statistics.reporting import ReportQuestion, report_on


@pytest.fixture
def table(tmp_path):
    drawn = random.Random(5)
    path = tmp_path / "users.csv"
    rows = [f"{drawn.random():.3f},{drawn.randint(0, 1)}\n" for _ in range(300)]
    path.write_text("s,y\n" + "".join(rows))
    return path


def paid(table):
    return [one.price.epsilon for one in beside(table).balance().charged]


def asked(table, **more):
    return TableQuestion(table=table, low=0.0, high=1.0, **more)


def test_every_question_from_python_is_written_down_before_it_is_answered(table, tmp_path):
    auc = auc_of_table(asked(table, epsilon=4.0), "s", "y")
    mean = mean_of_table(asked(table, epsilon=2.0), "s")
    question = ReportQuestion(table=table, column="y", domain="0,1", epsilon=1.0)
    reported = report_on(question, tmp_path / "reports.csv")
    assert paid(table) == [4.0, 2.0, 1.0]
    totals = [one.paid.total for one in (auc, mean, reported)]
    assert totals == ["epsilon = 4", "epsilon = 6", "epsilon = 7"]
    assert auc.plain()["users"] == mean.plain()["users"] == reported.plain()["reports"] == 300
    assert estimated([tmp_path / "reports.csv"])["reports"] == 300


def test_a_limit_refuses_from_python_too_and_nothing_is_written(table, tmp_path):
    mean_of_table(asked(table, epsilon=2.0), "s")
    for question in (
        lambda: mean_of_table(asked(table, epsilon=2.0, limit=3.0), "s"),
        lambda: auc_of_table(asked(table, epsilon=2.0, limit=3.0), "s", "y"),
        lambda: report_on(
            ReportQuestion(table=table, column="y", domain="0,1", epsilon=2.0, limit=3.0),
            tmp_path / "reports.csv",
        ),
    ):
        with pytest.raises(PrivacyError, match="above the limit 3"):
            question()
    assert paid(table) == [2.0]
    assert not (tmp_path / "reports.csv").exists()


def test_a_rehearsal_is_the_same_twice_and_costs_nothing(table):
    first, second = (mean_of_table(asked(table, seed=1), "s").plain() for _ in range(2))
    assert first == second
    assert first["rehearsal"]
    assert paid(table) == []


def test_what_noise_would_drown_is_refused_before_it_is_paid(table):
    with pytest.raises(ConfigError, match=r"300 users at epsilon = 0\.01 say nothing"):
        mean_of_table(asked(table, epsilon=0.01), "s")
    with pytest.raises(ConfigError, match=r"300 users at epsilon = 0\.01 say nothing"):
        auc_of_table(asked(table, epsilon=0.01), "s", "y")
    assert paid(table) == []
