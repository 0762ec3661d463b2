# Reads a JUnit report of cargo-nextest and prints `passed<TAB>N`, `failed<TAB>N`, and for each test that passed
# and said so on its output, `skipped<TAB>TEST: WHY`. Such a test is not among the passed ones.

function plain(text) {
    gsub(/&lt;/, "<", text)
    gsub(/&gt;/, ">", text)
    gsub(/&quot;/, "\"", text)
    gsub(/&apos;/, "'", text)
    gsub(/&amp;/, "\\&", text)
    return text
}

function attribute(name,    start) {
    if (!match($0, " " name "=\"[^\"]*\"")) {
        return ""
    }
    start = RSTART + length(name) + 3
    return plain(substr($0, start, RSTART + RLENGTH - start - 1))
}

/<testcase / {
    test = attribute("name")
    tests++
    fails = 0
}

/<(failure|error)[ >]/ && !fails {
    fails = 1
    failed++
}

/skipped: / && !fails {
    why = $0
    sub(/.*skipped: /, "", why)
    sub(/<\/system-(out|err)>.*/, "", why)
    why = plain(why)
    # The harness of the scenarios names the test itself.
    if (said[tests] == "" && index(why, test) != 1) {
        why = test ": " why
    }
    said[tests] = said[tests] (said[tests] == "" ? "" : "; ") why
}

END {
    for (i = 1; i <= tests; i++) {
        if (said[i] != "") {
            skipped++
            print "skipped\t" said[i]
        }
    }
    print "passed\t" tests - failed - skipped
    print "failed\t" failed + 0
}
