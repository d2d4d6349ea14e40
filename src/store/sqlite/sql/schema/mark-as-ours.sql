-- APPLICATION_ID = 1214673780: marks the file as a Holdfast file.
PRAGMA application_id = 1214673780;
