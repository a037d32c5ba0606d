"""How many positives are above each score: what the area under the ROC curve is counted from."""

from xcrepro.core.kernels import kernel


@kernel
def above(labels, values, n_labels, starts, positives, lo, hi, twice):
    """Of the entries [lo, hi): add to ``twice[group]`` 2 for each positive of the group with a larger value, 1 for an equal one.

    ``positives[starts[g]:starts[g + 1]]`` rise. An entry's label is ``labels[entry]``, or without labels its place in a row of
    ``n_labels``; its group is its label, or 0 where there is one group only.
    """
    one = starts.size == 2
    for entry in range(lo, hi):
        group = 0 if one else labels[entry] if labels.size else entry % n_labels
        first, end, value = starts[group], starts[group + 1], values[entry]
        low, high = first, end
        while low < high:  # the first positive that is not below
            middle = (low + high) // 2
            if positives[middle] < value:
                low = middle + 1
            else:
                high = middle
        equal = low
        while equal < end and positives[equal] == value:
            equal += 1
        twice[group] += 2 * (end - equal) + equal - low
