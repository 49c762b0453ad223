"""What can be wrong with a workflow file, each with a code of its own.

`FILE_NOT_FOUND` the entry file, or a file that `include=` names, isn't there ·
`SYNTAX_ERROR` a source file isn't Python; details: path, line ·
`IMPORT_FAILED` importing the entry raised; details: path, line, traceback ·
`ENVIRONMENT_MISSING` the entry needs a module that isn't installed; details: module ·
`ENTRY_NAME_TAKEN` the entry's module name belongs to another module ·
`INCLUDE_REFUSED` `include=` isn't a literal list, or leaves the project's root ·
`BUNDLE_TOO_LARGE` more files or bytes than a bundle may hold ·
`BUNDLE_CORRUPT` stored or unpacked bytes aren't those that the hash names ·
`BUNDLE_UNKNOWN` no stored bundle has this hash ·
`BUNDLE_LOADED` this process has already loaded another bundle ·
`WORKFLOW_NOT_FOUND` the entry defines no such workflow; details: candidates ·
`WORKFLOW_AMBIGUOUS` the entry defines several, and none was named; details: candidates
"""

from __future__ import annotations

from typing import Final

from smithers.workflow.errors import SmithersError

FILE_NOT_FOUND: Final = "FILE_NOT_FOUND"
SYNTAX_ERROR: Final = "SYNTAX_ERROR"
IMPORT_FAILED: Final = "IMPORT_FAILED"
ENVIRONMENT_MISSING: Final = "ENVIRONMENT_MISSING"
ENTRY_NAME_TAKEN: Final = "ENTRY_NAME_TAKEN"
INCLUDE_REFUSED: Final = "INCLUDE_REFUSED"
BUNDLE_TOO_LARGE: Final = "BUNDLE_TOO_LARGE"
BUNDLE_CORRUPT: Final = "BUNDLE_CORRUPT"
BUNDLE_UNKNOWN: Final = "BUNDLE_UNKNOWN"
BUNDLE_LOADED: Final = "BUNDLE_LOADED"
WORKFLOW_NOT_FOUND: Final = "WORKFLOW_NOT_FOUND"
WORKFLOW_AMBIGUOUS: Final = "WORKFLOW_AMBIGUOUS"


class BundleError(SmithersError):
    """A workflow file or its bundle can't be used; `code` says why, see the module."""
