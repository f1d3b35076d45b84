"""Names that exist, for most of the calls that schemathesis makes: with random ones every answer would be 404."""

import itertools

import schemathesis

KNOWN = {
    "schema": ["soak"], "collection": ["notes"], "table": ["t", "two", "notes"], "id": ["1"], "key": ["1", "1,a"],
    "_id": ["1", "2"],
}


NUMBERS = itertools.count(1)


def chosen(name, value):
    number = next(NUMBERS)
    names = KNOWN.get(name)
    return value if names is None or number % 6 == 0 else names[number % len(names)]


def with_known_names(values):
    if not isinstance(values, dict):
        return values
    return {name: chosen(name, value) for name, value in values.items()}


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    return with_known_names(path_parameters)


@schemathesis.hook
def map_query(context, query):
    return with_known_names(query)
