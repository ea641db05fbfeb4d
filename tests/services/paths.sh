# Where install.sh puts things and start.sh finds them. Sourced from this folder.
services_cache=${XDG_CACHE_HOME:-${HOME:?is not set, and XDG_CACHE_HOME is not either}/.cache}/sluice
dynamodb_home=$services_cache/dynamodb-$(cat pom.xml jars.sha256 dynamodb_index.py | sha256sum | cut -c1-12)
moto_home=$services_cache/moto-$({ cat requirements.txt; python3 -V; } 2>/dev/null | sha256sum | cut -c1-12)
opensearch_home=$services_cache/opensearch-$(cat opensearch/* | sha256sum | cut -c1-12)
