"""Random row labels over a domain, as plain as the door takes them."""

from dpsyn_sql.planning.row_labels import NearestLabel, Node, TreeLabel


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


def tree(domain, random, splits=7, name="label 2"):
    """A tree that splits a leaf at random, by a threshold or by a set of codes."""
    nodes, open_leaves = [], [None]  # of each leaf its parent and side
    for place in range(splits):
        spot = open_leaves.pop(int(random.integers(len(open_leaves))))
        if spot is not None:
            parent, side = spot
            nodes[parent][side] = place
        column = domain.names[int(random.integers(len(domain.names)))]
        size = domain[column].size
        threshold = int(random.integers(size + 1))
        by_set = tuple((random.random(size) < 0.5).tolist())
        right = tuple(code >= threshold for code in range(size)) if random.random() < 0.5 else by_set
        nodes.append({"attribute": column, "right": right, "below": 0, "above": 0})
        open_leaves += [(place, "below"), (place, "above")]
    for leaf, (parent, side) in enumerate(open_leaves):
        nodes[parent][side] = -1 - leaf
    return TreeLabel(name, tuple(Node(**node) for node in nodes))
