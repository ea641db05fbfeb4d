"""Reads a zip for Lambda as somebody else's tools do: legal.py ZIP (with the Python of install.sh's folder). The SBOM is valid by
CycloneDX's own strict schema, its licenses are expressions of SPDX, and the text of each license is in the zip: in the part's
copyright file, or in one that this file names."""
import json
import re
import sys
import zipfile

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from license_expression import get_spdx_licensing

# What only the text of a license says, with every run of spaces and comment marks as one space.
SAID = {
    "Apache-2.0": "Apache License Version 2.0, January 2004",
    "blessing": "The files listed have been put on the public domain by the sqlite3 contributors",
    "MIT": "Permission is hereby granted, free of charge, to any person obtaining a copy",
    "Zlib": "This software is provided 'as-is', without any express or implied warranty",
    "curl": "Permission to use, copy, modify, and distribute this software for any purpose with or without fee is hereby granted",
    "PostgreSQL": "Permission to use, copy, modify, and distribute this software and its documentation for any purpose, without fee, and without a written agreement is hereby granted",
    "LGPL-2.1-or-later": "GNU LESSER GENERAL PUBLIC LICENSE Version 2.1, February 1999",
    "LGPL-3.0-or-later": "GNU LESSER GENERAL PUBLIC LICENSE Version 3, 29 June 2007",
    "GPL-2.0-or-later": "GNU GENERAL PUBLIC LICENSE Version 2, June 1991",
    "GPL-3.0-or-later": "GNU GENERAL PUBLIC LICENSE Version 3, 29 June 2007",
    "GCC-exception-3.1": "GCC RUNTIME LIBRARY EXCEPTION Version 3.1, 31 March 2009",
}


def texts(files, name):
    """All that the zip has of a part's licenses, as one line."""
    own = files[f"licenses/{name}.copyright"]
    named = set(re.findall(r"/usr/share/common-licenses/([A-Za-z0-9.-]*[A-Za-z0-9])", own))
    return re.sub(r"[\s*#|.]+", " ", "\n".join([own, *(files[f"licenses/{text}"] for text in sorted(named))]))


def check(files):
    bom = json.loads(files["sbom.cdx.json"])
    wrong = JsonStrictValidator(SchemaVersion.from_version(bom["specVersion"])).validate_str(files["sbom.cdx.json"])
    assert wrong is None, wrong
    spdx = get_spdx_licensing()
    assert re.sub(r"\s+", " ", SAID["Apache-2.0"]) in re.sub(r"\s+", " ", files["LICENSE"])
    for part in bom["components"]:
        license, = part["licenses"]
        if f"licenses/{part['name']}.copyright" not in files:  # a library of the deployed folder
            assert any(re.match(rf"licenses/{re.escape(part['name'])}(\.|$)", name) for name in files), f"{part['name']}: no license"
            continue
        errors = spdx.validate(license["expression"]).errors
        assert not errors, f"{part['name']}: {errors}"
        said = texts(files, part["name"])
        for key in spdx.license_keys(license["expression"], unique=True):
            assert re.sub(r"[\s*#|.]+", " ", SAID[key]) in said, f"{part['name']}: the text of {key} is not in the zip"


def main():
    with zipfile.ZipFile(sys.argv[1]) as archive:
        check({name: archive.read(name).decode() for name in archive.namelist()
               if name.startswith("licenses/") or name in ("LICENSE", "NOTICE", "sbom.cdx.json")})


main()
