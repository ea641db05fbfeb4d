# One header of handler.h and what it includes: awk -f scripts/amalgamate.awk handlers/handler.h
# Each of our headers comes in where it is first included; system headers stay as they are.
function put(file,    line, part) {
    if (file in seen)
        return
    seen[file] = 1
    while ((getline line < file) > 0) {
        if (line ~ /^#include "/) {
            split(line, part, "\"")
            put(part[2])
        } else
            print line
    }
    close(file)
}
BEGIN { put(ARGV[1]); exit }
