"""Random row labels over a domain, as plain as the door takes them."""

from dpsyn_sql.planning.row_labels import NearestLabel


def nearest(domain, random, classes=4, name="label 1", largest=40, attributes=None):
    """Small whole scores, so that ties happen."""
    used = domain.names if attributes is None else attributes
    scores = tuple(
        (
            column,
            tuple(
                tuple(random.integers(-largest, largest + 1, domain[column].size).tolist())
                for _ in range(classes)
            ),
        )
        for column in used
    )
    return NearestLabel(name, tuple(random.integers(-largest, largest + 1, classes).tolist()), scores)
