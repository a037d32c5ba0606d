"""Do these predictions belong to this truth, and which truth is it? Diagnosed and said, never refused.

``check`` looks for rows and label ids that do not fit each other, scores that are none, a wrong split; ``first_look`` at points
that are in both splits, labels that training has not seen and names that are in the texts; ``fingerprint`` names a
truth by its content, and ``recognise`` says of which dataset it is a split, or that it is a twin's, or nobody's.
"""

from xcrepro.repro.inputs.fingerprints import Recognised, fingerprint, recognise
from xcrepro.tools.diagnose.alignment import Finding, check
from xcrepro.tools.diagnose.counted import counted
from xcrepro.tools.diagnose.split import first_look, of_dataset, over_seen

__all__ = [
    "Finding",
    "Recognised",
    "check",
    "counted",
    "fingerprint",
    "first_look",
    "of_dataset",
    "over_seen",
    "recognise",
]
