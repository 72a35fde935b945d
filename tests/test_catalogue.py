"""`fedstruct methods`: every option is told, as it is declared and as it is checked."""

import pytest
from pydantic import ValidationError

from command import assert_one_sentence, strictly, typed, words
from fedstruct.experiments.config import Experiment
from fedstruct.methods import METHODS, made

pytestmark = pytest.mark.usefixtures("here")


def told(*arguments):
    said = typed("methods", *arguments, "--json")
    assert (said.code, said.err) == (0, "")
    return strictly(said.out)


def test_every_method_is_listed_with_what_it_is():
    rows = told()["methods"]
    assert [row["name"] for row in rows] == list(METHODS)
    assert all(row["about"].endswith(".") for row in rows)
    assert len({row["about"] for row in rows}) == len(METHODS)
    assert "fedstruct-fedstar" in typed("methods").out


@pytest.mark.parametrize("name", METHODS)
def test_every_option_of_a_method_is_told(name):
    rows = told(name)["options"]
    kind = type(made(name).options)
    assert [row["name"] for row in rows] == list(kind.model_fields)
    assert {row["name"]: row["default"] for row in rows} == made(name).options.model_dump(mode="json")
    shown = words(typed("methods", name).out)
    for row in rows:
        assert row["description"]
        assert row["name"] in shown


def test_bounds_are_those_that_are_checked():
    kind = type(made("fedstruct").options)
    for row in told("fedstruct")["options"]:
        for bound, beyond in (("minimum", -1), ("exclusiveMinimum", 0), ("maximum", 1), ("exclusiveMaximum", 0)):
            if bound in row:
                with pytest.raises(ValidationError):
                    kind(**{row["name"]: row[bound] + beyond})


def test_a_dataset_brings_what_the_preset_sets():
    rows = {row["name"]: row["ours"] for row in told("fedstruct", "--dataset", "cora")["options"]}
    assert rows == Experiment(dataset="cora").build_method().options.model_dump(mode="json")
    assert "ours, cora" in words(typed("methods", "fedstruct", "--dataset", "cora").out)


def test_mistakes():
    assert_one_sentence(typed("methods", "fedstrukt"), "unknown method 'fedstrukt': did you mean 'fedstruct'?")
    assert_one_sentence(typed("methods", "--dataset", "cora"), "name one")


def test_help_says_where_options_are_listed():
    assert "fedstruct methods NAME" in words(typed("run", "--help").out.replace("│", ""))
