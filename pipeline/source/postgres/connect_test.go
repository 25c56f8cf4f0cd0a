package postgres

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/pipeline/pgtest"
	"github.com/fencepost/fencepost/pipeline/source"
)

// selfSigned makes a certificate for localhost, which is its own authority.
func selfSigned(t *testing.T) (cert, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})
}

func writeFile(t *testing.T, path string, text []byte) string {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// By a service, by a file of passwords, by a socket, and by each mode of TLS: we and the programs reach the same server,
// or both refuse it.
func TestConnections(t *testing.T) {
	dir, err := os.MkdirTemp("", "fpc") // short: the path of a socket is
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil { // the server has a user of its own
		t.Fatal(err)
	}
	srv := pgtest.New(t, pgtest.Options{Password: oddPassword, Settings: map[string]string{"unix_socket_directories": dir}})
	name := "it's a db"
	srv.NamedDatabase(t, name)
	srv.Exec(t, name, `CREATE TABLE t AS SELECT 1 AS a`)
	cert, key := selfSigned(t)
	for file, text := range map[string][]byte{"server.crt": cert, "server.key": key} {
		srv.Exec(t, "postgres", `COPY (SELECT unnest(string_to_array(`+literal(string(text))+`, E'\n'))) TO PROGRAM 'cat >`+file+` && chmod 600 `+file+`'`)
	}
	srv.Exec(t, "postgres", `ALTER SYSTEM SET ssl = on`)
	srv.Exec(t, "postgres", `SELECT pg_reload_conf()`)
	await(t, "TLS", func() bool { return srv.Text(t, "postgres", `SELECT current_setting('ssl')`) == "on" })
	root := writeFile(t, filepath.Join(dir, "root.crt"), cert)
	strange, _ := selfSigned(t)
	other := writeFile(t, filepath.Join(dir, "other.crt"), strange)
	port := fmt.Sprint(srv.Port)
	escaped := strings.NewReplacer(`\`, `\\`, `:`, `\:`).Replace(oddPassword)
	quoted := conninfoEscaper.Replace(oddPassword)
	db := " dbname='it\\'s a db' user=postgres"
	secure := "host=localhost port=" + port + db + " password='" + quoted + "'"

	for form, test := range map[string]struct {
		dsn string
		env map[string]string
		bad bool
	}{
		"service": {dsn: "service=shop password='" + quoted + "'",
			env: map[string]string{"PGSERVICEFILE": writeFile(t, filepath.Join(dir, "services"), []byte("[shop]\nhost=127.0.0.1\nport="+port+"\ndbname="+name+"\nuser=postgres\nsslmode=disable\n"))}},
		"password file": {dsn: "host=127.0.0.1 port=" + port + db + " sslmode=disable",
			env: map[string]string{"PGPASSFILE": writeFile(t, filepath.Join(dir, "pgpass"), []byte("127.0.0.1:"+port+":*:postgres:"+escaped+"\n"))}},
		"socket":              {dsn: "host=" + dir + " port=" + port + db + " password='" + quoted + "'"},
		"tls required":        {dsn: secure + " sslmode=require"},
		"tls verified":        {dsn: secure + " sslmode=verify-full sslrootcert=" + root},
		"tls of another":      {dsn: secure + " sslmode=verify-full sslrootcert=" + other, bad: true},
		"tls of another name": {dsn: "host=127.0.0.1 port=" + port + db + " password='" + quoted + "' sslmode=verify-full sslrootcert=" + root, bad: true},
	} {
		t.Run(form, func(t *testing.T) {
			for key, value := range test.env {
				t.Setenv(key, value)
			}
			s := newSource(t, Config{DSN: test.dsn})
			if test.bad {
				_, err := s.Dump(t.Context(), first)
				fails(t, err, "", source.ErrUnavailable)
				noSecret(t, err.Error())
				return
			}
			b := takeBackup(t, s, first)
			r, err := s.Restore(t.Context(), first, source.RestoreOptions{Target: "copy", Info: b.info})
			if err != nil {
				t.Fatal(err)
			}
			readAll(t, r, b)
			if _, err := r.Check(t.Context()); err != nil {
				t.Error(err)
			}
			if err := r.Abort(); err != nil {
				t.Error(err)
			}
		})
	}
}
