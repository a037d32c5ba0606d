"""Attention over the words of sparse rows, for a block of labels at once.

S[w, l] is how much label l looks at word w, U[w, l] what it sees there. Over the words of row i, of weights v:
    mass[i, l] = sum of v exp(S),   score[i, l] = sum of v exp(S) U / mass, 0 where the row has no words.
Inner loops run along labels, so that no sum changes its order when it goes by vector instructions.
"""

import numpy as np

from xcrepro.core.kernels import kernel

_ZERO = np.float32(0)


@kernel
def attend(indptr, index, value, exp, U, mass, score):
    """Fill mass and score, (rows, labels). index: the words, rows of exp and U, (words, labels), where exp is exp(S)."""
    n_labels = exp.shape[1]
    for i in range(mass.shape[0]):
        m, s = mass[i], score[i]
        m[:] = _ZERO
        s[:] = _ZERO
        for at in range(indptr[i], indptr[i + 1]):
            v, e, u = value[at], exp[index[at]], U[index[at]]
            for j in range(n_labels):
                share = v * e[j]
                m[j] += share
                s[j] += share * u[j]
        if indptr[i] < indptr[i + 1]:
            for j in range(n_labels):
                s[j] = np.divide(s[j], m[j])


@kernel
def attend_back(indptr, row, value, exp, U, mass, score, error, dS, dU):
    """Fill dS and dU, (words, labels): derivatives by S and U of what has the derivative ``error`` by score.

    indptr, row, value: the words' rows (CSC of what ``attend`` took). For one word of one row, with a = v exp(S) / mass its
    share of the attention, U gets a error, and S gets a error (U - score).
    """
    n_labels = exp.shape[1]
    for w in range(indptr.size - 1):
        s, u = dS[w], dU[w]
        s[:] = _ZERO
        u[:] = _ZERO
        for at in range(indptr[w], indptr[w + 1]):
            v, i = value[at], row[at]
            m, z, e = mass[i], score[i], error[i]
            for j in range(n_labels):
                part = np.divide(v * e[j], m[j])
                u[j] += part
                s[j] += part * z[j]
        for j in range(n_labels):
            s[j] = exp[w, j] * (U[w, j] * u[j] - s[j])
            u[j] *= exp[w, j]
