package s3

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/fencepost/fencepost/pipeline/secret"
	"github.com/fencepost/fencepost/pipeline/storage"
	"github.com/fencepost/fencepost/pipeline/storage/internal/stall"
)

const (
	// MinPart and MaxPart bound Options.PartSize, in bytes. The protocol refuses smaller parts.
	MinPart = 5 << 20
	MaxPart = 512 << 20
	// DefaultPart is what Options.PartSize 0 stands for, in bytes.
	DefaultPart = 8 << 20
	// DefaultStall is what Options.Stall 0 stands for.
	DefaultStall = time.Minute
	// MaxPrefix is the longest Options.Prefix, in bytes: with the longest name a key stays below the protocol's 1,024.
	MaxPrefix = 100
	// attempts is how often a request is made at most; pauses between them grow to a second.
	attempts = 4
)

// Options say which bucket, and how. Zero values are defaults where one is named.
type Options struct {
	// Endpoint is the server's URL, https://host or http://host:port, without a path. Required.
	Endpoint string
	// Region is the bucket's region. Default us-east-1, which most other servers than Amazon's accept.
	Region string
	// Bucket must exist. Required.
	Bucket string
	// Prefix is put before every key, a valid object name of at most MaxPrefix bytes. Empty: the bucket is all ours.
	Prefix string
	// AccessKey and SecretKey are the credentials. Required.
	AccessKey string
	SecretKey secret.Secret
	// PathStyle puts the bucket into the path instead of the host name; most servers but Amazon's need it.
	PathStyle bool
	// PartSize is the size of the first parts, in bytes, MinPart to MaxPart. A Put takes twice that. 0: DefaultPart.
	PartSize int64
	// Lock protects objects from being deleted. The zero value does not.
	Lock Lock
	// Stall is how long a connection may be without a byte moving before it is given up. 0: DefaultStall.
	Stall time.Duration
	// Log gets what a Put cannot report, such as an abort that failed. nil: nothing is logged.
	Log *slog.Logger
}

// Lock is the protection of objects by the bucket, which must have been made with object lock.
type Lock struct {
	// Mode is governance (some credentials may lift it) or compliance (nobody may). Empty: no lock.
	Mode string
	// Days is how long an object is protected, counted from its Put; at least 1.
	Days int
}

// Storage is an opened bucket. Made by Open.
type Storage struct {
	core      *minio.Core
	transport *http.Transport
	bucket    string
	root      string // the prefix with its slash, or empty
	part      int64
	lock      Lock
	log       *slog.Logger
	clean     secret.Redactor
}

// Open checks o and returns the bucket. It does not talk to the server: whether bucket and credentials are right shows
// at the first call.
func Open(o Options) (*Storage, error) {
	return open(o, func(t http.RoundTripper) http.RoundTripper { return t })
}

// open is Open with something between the client and its connections.
func open(o Options, between func(http.RoundTripper) http.RoundTripper) (*Storage, error) {
	u, err := o.check()
	if err != nil {
		return nil, fmt.Errorf("open s3 storage: %w", err)
	}
	lookup := minio.BucketLookupDNS
	if o.PathStyle {
		lookup = minio.BucketLookupPath
	}
	transport := stall.Transport(o.Stall)
	core, err := minio.NewCore(u.Host, &minio.Options{
		Creds: credentials.NewStaticV4(o.AccessKey, o.SecretKey.Reveal(), ""), Secure: u.Scheme == "https", Region: o.Region,
		Transport: between(closing{transport}), BucketLookup: lookup, TrailingHeaders: true, MaxRetries: attempts,
	})
	if err != nil {
		return nil, fmt.Errorf("open s3 storage: %w", err)
	}
	s := &Storage{core: core, transport: transport, bucket: o.Bucket, part: o.PartSize, lock: o.Lock, log: o.Log,
		clean: secret.NewRedactor(o.SecretKey)}
	if o.Prefix != "" {
		s.root = o.Prefix + "/"
	}
	return s, nil
}

// check fills in the defaults and returns the endpoint.
func (o *Options) check() (*url.URL, error) {
	if o.Region == "" {
		o.Region = "us-east-1"
	}
	if o.PartSize == 0 {
		o.PartSize = DefaultPart
	}
	if o.Stall == 0 {
		o.Stall = DefaultStall
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	u, err := url.Parse(o.Endpoint)
	switch {
	case err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "":
		return nil, errors.New("endpoint is no URL: want https://host or http://host:port")
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil:
		return nil, errors.New("endpoint has more than a host and a port: the bucket has a field of its own")
	case o.Bucket == "":
		return nil, errors.New("bucket is missing")
	case o.AccessKey == "" || o.SecretKey.IsEmpty():
		return nil, errors.New("access key or secret key is missing")
	case o.PartSize < MinPart || o.PartSize > MaxPart:
		return nil, fmt.Errorf("part size is %d, want %d to %d bytes", o.PartSize, MinPart, MaxPart)
	case o.Stall < 0:
		return nil, fmt.Errorf("stall is %s, want more than 0", o.Stall)
	case len(o.Prefix) > MaxPrefix:
		return nil, fmt.Errorf("prefix is %d bytes long, want at most %d", len(o.Prefix), MaxPrefix)
	case o.Lock.Mode != "" && o.Lock.Mode != "governance" && o.Lock.Mode != "compliance":
		return nil, fmt.Errorf("lock mode is %q, want governance or compliance", o.Lock.Mode)
	case o.Lock.Mode == "" && o.Lock.Days != 0, o.Lock.Mode != "" && o.Lock.Days < 1:
		return nil, fmt.Errorf("lock is for %d days with mode %q, want a mode and at least 1 day, or neither", o.Lock.Days, o.Lock.Mode)
	}
	return u, storage.ValidPrefix(o.Prefix)
}

// Close closes the connections that are idle. Calls that run end by themselves.
func (s *Storage) Close() error {
	s.transport.CloseIdleConnections()
	return nil
}

func (s *Storage) key(name string) string { return s.root + name }
