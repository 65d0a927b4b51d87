"""Extensions of Karat: one folder is one subject, and can be deleted without the others.

``extension.py`` in each folder says what it adds. The core knows nothing of them.
"""

#: the folders, in the order in which their commands and parts are listed
FOLDERS: tuple[str, ...] = (
    "cluster",
    "compat",
    "decide",
    "endpoints",
    "models",
    "plots",
    "publish",
    "search",
    "serve",
)
