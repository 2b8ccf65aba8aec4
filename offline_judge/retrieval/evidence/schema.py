"""The tables of the evidence record, and how an older record becomes one of today.

A passage is kept once, by its content; `places` says in which documents it stands. Its vectors
belong to it, so equal passages are embedded once. `words` is the full-text index over passages,
written together with them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping

APPLICATION_ID = 0x4F4A4556  # "OJEV", in the header of the file
VERSION = 1

SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
CREATE TABLE documents (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, document_id TEXT NOT NULL,
  source TEXT NOT NULL, title TEXT NOT NULL, url TEXT NOT NULL, date TEXT NOT NULL,
  found_at TEXT NOT NULL
) STRICT;
CREATE INDEX documents_source ON documents (source);
CREATE TABLE passages (
  id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, title TEXT NOT NULL,
  text TEXT NOT NULL, found_at TEXT NOT NULL
) STRICT;
CREATE TABLE places (
  id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE,
  passage INTEGER NOT NULL REFERENCES passages ON DELETE CASCADE,
  document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
  passage_id TEXT NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL, found_at TEXT NOT NULL
) STRICT;
CREATE INDEX places_passage ON places (passage, found_at);
CREATE INDEX places_document ON places (document);
CREATE TABLE queries (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, provider TEXT NOT NULL,
  identity TEXT NOT NULL, query TEXT NOT NULL, normal TEXT NOT NULL, locale TEXT NOT NULL,
  date_from TEXT NOT NULL, date_to TEXT NOT NULL, max_age_days INTEGER NOT NULL,
  depth INTEGER NOT NULL, found_at TEXT NOT NULL
) STRICT;
CREATE INDEX queries_normal ON queries (normal);
CREATE INDEX queries_found ON queries (found_at);
CREATE TABLE results (
  query INTEGER NOT NULL REFERENCES queries ON DELETE CASCADE, rank INTEGER NOT NULL,
  place INTEGER NOT NULL REFERENCES places ON DELETE CASCADE, score REAL NOT NULL,
  PRIMARY KEY (query, rank)
) STRICT, WITHOUT ROWID;
CREATE INDEX results_place ON results (place);
CREATE TABLE spaces (
  id INTEGER PRIMARY KEY, embedder TEXT NOT NULL, dimension INTEGER NOT NULL,
  UNIQUE (embedder, dimension)
) STRICT;
CREATE TABLE vectors (
  id INTEGER PRIMARY KEY AUTOINCREMENT, space INTEGER NOT NULL REFERENCES spaces,
  passage INTEGER NOT NULL REFERENCES passages ON DELETE CASCADE, vector BLOB NOT NULL,
  UNIQUE (space, passage)
) STRICT;
CREATE INDEX vectors_passage ON vectors (passage);
INSERT INTO meta VALUES ('deletions', 0);
"""
WORDS = "CREATE VIRTUAL TABLE words USING fts5(terms, content='', detail=none, tokenize='ascii')"

MIGRATIONS: Mapping[int, Callable[[sqlite3.Connection], None]] = {}
"""Version of a record to the step that makes it one of the next version."""
