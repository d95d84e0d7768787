# What failed, of the output of `cargo test`, a line each: `PROGRAM TEST`, and
# `unnamed TARGET` of a target that failed and named no test, as one does that was
# aborted, or whose doc-tests could not be compiled.
/^ +Running .*deps\/[A-Za-z0-9_]+-/ {
    match($0, /deps\/[A-Za-z0-9_]+-/)
    program = substr($0, RSTART + 5, RLENGTH - 6)
    is_failed = has_named = 0
}
/^ +Doc-tests / {
    program = "doc"
    is_failed = has_named = 0
}
/^(successes|failures):$/ { is_failed = /^f/ }
# Names of doc-tests have blanks in them.
is_failed && /^---- .+ ----$/ {
    sub(/^---- /, "")
    sub(/( stdout)? ----$/, "")
    print program, $0
    has_named = 1
}
# Cargo's word on each target that failed, behind what an aborted one had begun to say.
!has_named && /error: (doc)?test failed, to rerun pass `/ {
    sub(/.* pass `/, "")
    sub(/`.*/, "")
    print "unnamed", $0
}
