package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/pipeline/source"
)

// script is what an archive leaves out about its database. As a part of a backup it is a file of SQL that a person can
// run, followed by one line of JSON with the same facts. A restore reads only that line: the SQL in the file is never
// run by us, so a backup that somebody tampered with gets no statement of its own past us.
type script struct {
	Owner     string           `json:"owner"`
	ConnLimit int32            `json:"conn_limit"` // -1: none
	Comment   *string          `json:"comment,omitempty"`
	Default   bool             `json:"default_rights"` // rights were never changed; Rights is empty
	Rights    []right          `json:"rights,omitempty"`
	Settings  []setting        `json:"settings,omitempty"`
	Labels    []label          `json:"labels,omitempty"`
	Counts    map[string]int64 `json:"counts"` // kind of object → how many the dump holds
	// Lists are digests of the names of what is counted, of a whole dump: see listQuery.
	Lists   map[string]string `json:"lists,omitempty"`
	Partial bool              `json:"partial,omitempty"` // chosen parts were dumped: only some kinds are counted
}

type right struct {
	Role   string `json:"role"` // "" is PUBLIC
	Right  string `json:"right"`
	Option bool   `json:"option,omitempty"` // may grant it on
}

type setting struct {
	Role  string `json:"role,omitempty"` // "" is every role
	Name  string `json:"name"`
	Value string `json:"value"`
}

type label struct {
	Provider string `json:"provider"`
	Label    string `json:"label"`
}

const scriptQuery = `
SELECT jsonb_build_object(
	'owner', pg_get_userbyid(datdba), 'conn_limit', datconnlimit, 'comment', shobj_description(d.oid, 'pg_database'),
	'default_rights', datacl IS NULL,
	'rights', (SELECT jsonb_agg(jsonb_build_object('role', CASE grantee WHEN 0 THEN '' ELSE pg_get_userbyid(grantee) END,
		'right', privilege_type, 'option', is_grantable) ORDER BY grantee, privilege_type) FROM aclexplode(datacl)),
	'settings', (SELECT jsonb_agg(jsonb_build_object('role', CASE setrole WHEN 0 THEN '' ELSE pg_get_userbyid(setrole) END,
		'name', split_part(kv, '=', 1), 'value', substr(kv, strpos(kv, '=') + 1)) ORDER BY setrole, kv)
		FROM pg_db_role_setting, unnest(setconfig) kv WHERE setdatabase = d.oid),
	'labels', (SELECT jsonb_agg(jsonb_build_object('provider', provider, 'label', label) ORDER BY provider)
		FROM pg_shseclabel WHERE objoid = d.oid AND classoid = 'pg_database'::regclass))::text
FROM pg_database d WHERE datname = current_database()`

// captureScript reads the script of the database in which conn is, in conn's transaction.
func captureScript(ctx context.Context, conn *session, f filters) (script, error) {
	var s script
	var text string
	if err := conn.QueryRow(ctx, scriptQuery).Scan(&text); err != nil {
		return s, err
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, fmt.Errorf("read the database's settings: %w", err)
	}
	var err error
	s.Counts, err = f.count(ctx, conn)
	if s.Partial = f.partial(); err != nil || s.Partial {
		return s, err
	}
	s.Lists, err = readLists(ctx, conn)
	return s, err
}

// scriptMark opens the last line of a script, which goes on with a hash of all that comes before it and of the JSON, and
// ends with the JSON. A file without a good last line is cut or changed.
const scriptMark = "-- fencepost database 1 "

const scriptHead = `-- Owner, rights and settings of a database. To give them to a restored database, as a superuser:
--   psql --set=ON_ERROR_STOP=1 --set=database=NAME --file=database.sql postgres
`

// maxScript bounds what a restore reads of a script.
const maxScript = 4 << 20

// encode writes the script as a file.
func (s script) encode() ([]byte, error) {
	line, err := json.Marshal(s) // one line: JSON escapes line ends
	if err != nil {
		return nil, fmt.Errorf("write the database's settings: %w", err)
	}
	statements, err := s.statements(`:"database"`)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(scriptHead)
	for _, statement := range statements {
		b.WriteString(statement + ";\n")
	}
	b.WriteString(scriptMark + scriptHash(b.Bytes(), line) + " " + string(line) + "\n")
	return b.Bytes(), nil
}

func scriptHash(sql, line []byte) string {
	h := sha256.New()
	h.Write(sql) // never fails
	h.Write(line)
	return hex.EncodeToString(h.Sum(nil))
}

// decodeScript reads a whole script; one that is cut or not ours is source.ErrIncomplete.
func decodeScript(r io.Reader) (script, error) {
	var s script
	b, err := io.ReadAll(io.LimitReader(r, maxScript+1))
	if err != nil {
		return s, err
	}
	if len(b) > maxScript {
		return s, fmt.Errorf("%w: longer than %d bytes", source.ErrIncomplete, maxScript)
	}
	at := bytes.LastIndex(b, []byte("\n"+scriptMark)) + 1
	hash, line, _ := bytes.Cut(bytes.TrimPrefix(b[at:], []byte(scriptMark)), []byte(" "))
	line, ended := bytes.CutSuffix(line, []byte("\n"))
	if at == 0 || !ended || string(hash) != scriptHash(b[:at], line) {
		return s, fmt.Errorf("%w: %s has no good last line", source.ErrIncomplete, source.PartDatabase)
	}
	if err := json.Unmarshal(line, &s); err != nil {
		return s, fmt.Errorf("%w: %s: read its last line: %w", source.ErrIncomplete, source.PartDatabase, err)
	}
	return s, nil
}

// statements returns the SQL that gives the script's facts to a database, whose name is given as SQL.
func (s script) statements(database string) ([]string, error) {
	var out []string
	if s.Owner != "" { // else the one who restores
		out = append(out, "ALTER DATABASE "+database+" OWNER TO "+ident(s.Owner))
	}
	if s.ConnLimit >= 0 {
		out = append(out, fmt.Sprintf("ALTER DATABASE %s CONNECTION LIMIT %d", database, s.ConnLimit))
	}
	if !s.Default {
		out = append(out, "REVOKE ALL ON DATABASE "+database+" FROM PUBLIC, "+ident(s.Owner))
	}
	for _, r := range s.Rights {
		grant, err := r.statement(database)
		if err != nil {
			return nil, err
		}
		out = append(out, grant)
	}
	for _, set := range s.Settings {
		out = append(out, set.statement(database))
	}
	for _, l := range s.Labels {
		out = append(out, "SECURITY LABEL FOR "+ident(l.Provider)+" ON DATABASE "+database+" IS "+literal(l.Label))
	}
	if s.Comment != nil {
		out = append(out, "COMMENT ON DATABASE "+database+" IS "+literal(*s.Comment))
	}
	return out, nil
}

func (r right) statement(database string) (string, error) {
	switch r.Right {
	case "CREATE", "CONNECT", "TEMPORARY":
	default:
		return "", fmt.Errorf("database right %q is not known", r.Right)
	}
	role := "PUBLIC"
	if r.Role != "" {
		role = ident(r.Role)
	}
	grant := "GRANT " + r.Right + " ON DATABASE " + database + " TO " + role
	if r.Option {
		grant += " WITH GRANT OPTION"
	}
	return grant, nil
}

// listSettings are the settings whose value is a list of quoted names: each must be given as a word of its own.
var listSettings = map[string]bool{
	"local_preload_libraries": true, "search_path": true, "session_preload_libraries": true, "temp_tablespaces": true,
}

func (s setting) statement(database string) string {
	value := literal(s.Value)
	if listSettings[strings.ToLower(s.Name)] {
		words := splitNames(s.Value)
		for i, word := range words {
			words[i] = literal(word)
		}
		if value = strings.Join(words, ", "); value == "" {
			value = "''"
		}
	}
	whose := "ALTER DATABASE " + database
	if s.Role != "" {
		whose = "ALTER ROLE " + ident(s.Role) + " IN DATABASE " + database
	}
	return whose + " SET " + pgx.Identifier(strings.Split(s.Name, ".")).Sanitize() + " TO " + value
}

// splitNames splits a list of names as PostgreSQL stores it: "$user", public
func splitNames(list string) []string {
	var words []string
	var b strings.Builder
	quoted, any := false, false
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case c == '"' && quoted && i+1 < len(list) && list[i+1] == '"':
			b.WriteByte('"')
			i++
		case c == '"':
			quoted, any = !quoted, true
		case c == ',' && !quoted:
			words, any = append(words, b.String()), false
			b.Reset()
		case c == ' ' && !quoted:
		default:
			any = true
			b.WriteByte(c)
		}
	}
	if any {
		words = append(words, b.String())
	}
	return words
}

func ident(name string) string { return pgx.Identifier{name}.Sanitize() }

// literal quotes a text for SQL whatever standard_conforming_strings is.
func literal(text string) string {
	quoted := "'" + strings.ReplaceAll(text, "'", "''") + "'"
	if strings.Contains(text, `\`) {
		return "E" + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}

// apply gives the script's facts to a database, all or none.
func (s script) apply(ctx context.Context, conn *session, database string) error {
	statements, err := s.statements(ident(database))
	if err != nil {
		return err
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	for _, statement := range statements {
		if _, err := tx.Exec(ctx, statement); err != nil {
			clean, cancel := detached(ctx)
			defer cancel()
			return errors.Join(err, tx.Rollback(clean))
		}
	}
	return tx.Commit(ctx)
}
