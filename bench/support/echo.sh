#!/bin/bash
# Builds aws-lambda-cpp's echo into the file named, from the sources that AWS publishes with its Node.js runtime client (npm), against
# this machine's libcurl. Without npm or network it builds nothing, and the benchmark leaves the comparison out.
set -euo pipefail
out=$1
version=3.3.0
sha512='9p06TbKVK4a050NY/vYOxhMHvnIiUu5o1W0//q6yNLSqA/c91pn4BOj3C3sRTpplkUNsGJdU5qWyU2STo6L8hA=='
[ -x "$out" ] && exit 0
command -v npm >/dev/null && command -v c++ >/dev/null || exit 0
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm pack --silent "aws-lambda-ric@$version" >/dev/null 2>&1 || exit 0
[ "$(openssl dgst -sha512 -binary "aws-lambda-ric-$version.tgz" | base64 -w0)" = "$sha512" ]
tar xzf "aws-lambda-ric-$version.tgz"
tar xzf package/deps/aws-lambda-cpp-*.tar.gz
cd aws-lambda-cpp-*/
cat >version.cpp <<'END'
#include <aws/lambda-runtime/version.h>
namespace aws { namespace lambda_runtime {
const char *get_version() { return "bench"; }
unsigned get_version_major() { return 0; }
unsigned get_version_minor() { return 0; }
unsigned get_version_patch() { return 0; }
}}
END
cd - >/dev/null
c++ -std=c++11 -O2 -DNDEBUG -I"$(echo aws-lambda-cpp-*/include)" aws-lambda-cpp-*/src/{logging,runtime}.cpp aws-lambda-cpp-*/version.cpp "$here/echo.cc" -lcurl -o echo
mkdir -p "$(dirname "$out")"
mv echo "$out"
