package admin

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

// TLS is how the admin port speaks: TLS 1.2 at least, with the certificate and key in these files, which are read again
// when they have changed, so that a renewed certificate needs no restart. It fails when they cannot be read now.
func TLS(certificate, key string) (*tls.Config, error) {
	k := &keptPair{certificate: certificate, key: key}
	if _, err := k.get(nil); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: k.get, NextProtos: []string{"h2", "http/1.1"}}, nil
}

// keptPair is a certificate and its key as they were read last.
type keptPair struct {
	certificate, key string

	mu   sync.Mutex
	pair *tls.Certificate
	at   [2]time.Time // when the files had changed last
}

func (k *keptPair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var at [2]time.Time
	for i, path := range []string{k.certificate, k.key} {
		info, err := os.Stat(path)
		if err != nil {
			return k.orOld(err)
		}
		at[i] = info.ModTime()
	}
	if k.pair != nil && at == k.at {
		return k.pair, nil
	}
	pair, err := tls.LoadX509KeyPair(k.certificate, k.key)
	if err != nil {
		return k.orOld(err)
	}
	k.pair, k.at = &pair, at
	return k.pair, nil
}

// orOld is the pair of before while the files do not fit together: one of them is just being replaced.
func (k *keptPair) orOld(err error) (*tls.Certificate, error) {
	if k.pair != nil {
		return k.pair, nil
	}
	return nil, fmt.Errorf("read the certificate of the admin port: %w", err)
}
