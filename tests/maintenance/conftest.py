"""The project folder of the engine's tests."""

from tests.repro.conftest import project as project
