//! A result document for people: terminal table, HTML page, comparison.
