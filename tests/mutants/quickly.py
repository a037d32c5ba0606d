"""For pytest: a failing example of hypothesis is not made smaller, nor kept; that a test fails is all that is asked."""

import hypothesis

phases = hypothesis.Phase.explicit, hypothesis.Phase.generate
hypothesis.settings.register_profile("mutants", phases=phases, deadline=None, database=None)
hypothesis.settings.load_profile("mutants")
