// Package arch holds the architecture of the repository as tests. It has no code of its
// own to import: `go test ./cmd/internal/arch` reads every Go file of the tree (their
// syntax only, so that files for other systems count too) and compares it with tables.
//
// The tables are the part to read and to edit:
//
//   - rows (table_test.go): every package of ours and the packages of ours that it may
//     import. A package without a row fails the test: adding a package means adding its
//     row, in the same commit, with the arrows that the design gives it.
//
//   - vendors (vendors_test.go): every library and who may see it. A library without a
//     line fails too. One library is touched by one shim.
//
//   - topLevel and the word rules (rules_test.go): the fixed list of files and folders at
//     the top; a package doc of substance everywhere; no init function; in tests no
//     time.Sleep outside a synctest bubble, and no skip but for the listed reasons.
//
//   - library (library_test.go): the packages that host apps import. What they export is listed in testdata/api (`make api`
//     writes the lists anew), shows no type of another module, is documented to the last field; and they keep no state of
//     their own.
//
// Test files may use more than their package does: everything of their own half of the
// tree (the group's half: signals, gms, recovery; the bytes' half: pipeline; configs; and
// cmd, which may use all). The two halves never meet outside cmd, in tests neither.
//
// Each rule is a pure function from a parsed tree to a list of problems, and each one is
// also run over a small synthetic tree that breaks it (synthetic_test.go), so that a rule
// that stopped seeing anything would be noticed.
package arch
