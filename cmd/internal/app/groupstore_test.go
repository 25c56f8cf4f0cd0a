package app

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/cmd/internal/accounts"
	"github.com/fencepost/fencepost/cmd/internal/api"
	"github.com/fencepost/fencepost/cmd/internal/kept"
	"github.com/fencepost/fencepost/gms"
)

// TestLaterRecordsOfANode: what only a later version understands is refused by whatever is kept in the group's own state, in
// words, and nothing that came with it is there.
func TestLaterRecordsOfANode(t *testing.T) {
	a, _ := start(t, config(t))
	ready(t, a)
	row := struct {
		New string `protocol:"99"`
	}{"x"}
	store := groupStore{a}
	err := store.Commit(t.Context(), kept.Put("a", "as ever", 0), kept.Put("b", row, 0))
	if e := translate(err); e == nil || e.Code != api.CodeConflict || !strings.Contains(e.Message, "is of protocol 99, and the group writes") || !strings.Contains(e.Hint, "upgrade finalize") {
		t.Errorf("%v is told as %+v", err, e)
	}
	if _, err := a.group.Cache().Commit(t.Context(), gms.Txn{Puts: []gms.Put{putOf(gms.Key{Component: "x", Key: "x"}, row)}}); err == nil {
		t.Error("it was kept beside the others")
	}
	if all := store.localBelow("a"); len(all) != 0 {
		t.Errorf("%d records", len(all))
	}
	if _, err := a.accounts.AddUser(t.Context(), accounts.NewUser{Name: "ann", Role: api.RoleAdmin, Password: "correct horse battery"}, "test"); err != nil {
		t.Errorf("what all understand: %v", err)
	}
}

// TestEveryRecordAsksForItsProtocol: what is put into the state cache is made by putOf or the group's store, which see to it that
// no program reads what it does not understand, or is a bare text. A record made otherwise would escape that.
func TestEveryRecordAsksForItsProtocol(t *testing.T) {
	made := 0
	for _, dir := range []string{".", "../../components"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			set := token.NewFileSet()
			tree, err := parser.ParseFile(set, file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(tree, func(n ast.Node) bool {
				lit, ok := n.(*ast.CompositeLit)
				if !ok {
					return true
				}
				if made, named := lit.Type.(*ast.SelectorExpr); named && made.Sel.Name == "Record" { // what was read, or goes into a state
					return true
				}
				fields := map[string]ast.Expr{}
				for _, e := range lit.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok {
						if key, ok := kv.Key.(*ast.Ident); ok {
							fields[key.Name] = kv.Value
						}
					}
				}
				if fields["Key"] == nil || fields["Value"] == nil || fields["Version"] != nil { // a gms.Put has both, and no version yet
					return true
				}
				if made++; fields["Protocol"] == nil && !bareText(fields["Value"]) {
					t.Errorf("%s: a record of the state cache that asks for no protocol: make it by putOf", set.Position(lit.Pos()))
				}
				return true
			})
		}
	}
	if made < 5 {
		t.Errorf("only %d records are made: was it looked at the right files?", made)
	}
}

// bareText tells whether an expression is a text or a number as bytes: []byte(by).
func bareText(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	made, ok := call.Fun.(*ast.ArrayType)
	return ok && made.Len == nil
}
