#!/bin/sh
# Builds the Debian package: DEBFULLNAME="Jane Doe" DEBEMAIL=jane@example.com contrib/package.sh [OPTIONS OF cargo deb]
# The variables name the package's maintainer, as for Debian's own tools. The result is in target/debian.
set -eu
cd "$(dirname "$0")/.."
: "${DEBFULLNAME:?is missing: the name of the maintainer of the package}"
: "${DEBEMAIL:?is missing: the address of the maintainer of the package}"
exec cargo deb -p weir --profile dist --maintainer "$DEBFULLNAME <$DEBEMAIL>" "$@"
