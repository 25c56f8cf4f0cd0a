package configs

import (
	"fmt"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
)

func (c lists) checkStorages(ps *problems) {
	seen := map[string]int{}
	for i, s := range c.Storages {
		at := fmt.Sprintf("storages[%d]", i)
		checkItemName(ps, at, s.Name, "storages", seen, i)
		if !s.check(ps, at) {
			continue
		}
		for j, before := range c.Storages[:i] {
			if key, value := s.overlaps(before); key != "" {
				ps.add(at+"."+key, "is %q, as that of storages[%d] or within it: two copies in one place are one copy", value, j)
				break
			}
		}
	}
}

func (c *Config) checkRequired(ps *problems) {
	if n := int(c.Backup.Require); n > 1 && len(c.Storages) > 0 && n > len(c.Storages) {
		ps.add("backup.require", "is %d, but there are %d storages: lower it or add storages", n, len(c.Storages))
	}
}

// check tells whether the kind is known.
func (s *Storage) check(ps *problems, at string) bool {
	allowed := []string{"name", "kind"}
	switch s.Kind {
	case "mem":
	case "local":
		allowed = append(allowed, "path", "min_free")
		checkAbsolute(ps, at+".path", s.Path)
	case "s3":
		allowed = append(allowed, "endpoint", "region", "bucket", "prefix", "access_key", "secret_key", "path_style", "part_size", "lock", "append_only")
		s.checkServer(ps, at)
		s.checkBucket(ps, at)
	case "dropbox":
		allowed = append(allowed, "app_key", "refresh_token", "folder", "part_size", "endpoint")
		s.checkAccount(ps, at)
	default:
		checkOneOf(ps, at+".kind", s.Kind, "local", "s3", "dropbox", "mem")
		return false
	}
	checkFields(ps, at, reflect.ValueOf(*s), s.Kind, allowed)
	return true
}

// checkEndpoint never repeats the endpoint: keys may be in it.
func (s *Storage) checkEndpoint(ps *problems, at string) {
	u, err := url.Parse(s.Endpoint)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		ps.add(at+".endpoint", "is no URL of a server: want https://host or http://host:port")
	case u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		ps.add(at+".endpoint", "has more than a host and a port: what else there is to say has fields of its own")
	}
}

// checkAccount looks at a storage of kind dropbox.
func (s *Storage) checkAccount(ps *problems, at string) {
	if s.AppKey == "" {
		ps.add(at+".app_key", "is missing: want the key of your app, from its page at Dropbox")
	}
	if problem := s.RefreshToken.problem(false); problem != "" {
		ps.add(at+".refresh_token", "%s", problem)
	}
	if s.Endpoint != "" {
		s.checkEndpoint(ps, at)
	}
	if !folderName.MatchString(s.Folder) || len(s.Folder) > 100 {
		ps.add(at+".folder", "is %q, want at most 100 of a-z, A-Z, 0-9, _, - and spaces, with slashes between names", s.Folder)
	}
	if s.PartSize < 4<<20 || s.PartSize > 148<<20 || s.PartSize%(4<<20) != 0 {
		ps.add(at+".part_size", "is %s, want a multiple of 4MiB up to 148MiB", s.PartSize)
	}
}

// folderName are names that neither begin nor end with a space, with slashes between them, or nothing.
var folderName = regexp.MustCompile(`^(|[A-Za-z0-9_-]([A-Za-z0-9 _-]*[A-Za-z0-9_-])?(/[A-Za-z0-9_-]([A-Za-z0-9 _-]*[A-Za-z0-9_-])?)*)$`)

func (s *Storage) checkServer(ps *problems, at string) {
	s.checkEndpoint(ps, at)
	if s.Region == "" {
		ps.add(at+".region", "is missing: want the bucket's region, or us-east-1")
	}
	if problem := s.AccessKey.problem(true); problem != "" {
		ps.add(at+".access_key", "%s", problem)
	}
	if problem := s.SecretKey.problem(false); problem != "" {
		ps.add(at+".secret_key", "%s", problem)
	}
}

func (s *Storage) checkBucket(ps *problems, at string) {
	if !bucketName.MatchString(s.Bucket) {
		ps.add(at+".bucket", "is %q, want 3 to 63 of a-z, 0-9, . and -, which are not at an end", s.Bucket)
	}
	if s.Prefix != "" && !validPrefix(s.Prefix) {
		ps.add(at+".prefix", "is %q, want at most 100 bytes, no slash at an end, no empty element, . or .., and not _fencepost", s.Prefix)
	}
	if s.PartSize < 5<<20 || s.PartSize > 512<<20 {
		ps.add(at+".part_size", "is %s, want 5MiB to 512MiB", s.PartSize)
	}
	switch {
	case s.Lock.Mode == "" && s.Lock.Days != 0:
		ps.add(at+".lock.mode", "is missing: want governance or compliance")
	case s.Lock.Mode != "":
		checkOneOf(ps, at+".lock.mode", s.Lock.Mode, "governance", "compliance")
		checkRange(ps, at+".lock.days", s.Lock.Days, 1, 36500)
	}
}

func validPrefix(prefix string) bool {
	if len(prefix) > 100 || strings.HasPrefix(strings.ToLower(prefix), "_fencepost") || strings.ContainsAny(prefix, "\\\x00\n\r\t") {
		return false
	}
	for element := range strings.SplitSeq(prefix, "/") {
		if element == "" || element == "." || element == ".." {
			return false
		}
	}
	return true
}

// overlaps gives the key and its value by which two storages are in one place, or one
// within the other; empty when they are not.
func (s *Storage) overlaps(other Storage) (key, value string) {
	switch {
	case s.Kind != other.Kind:
	case s.Kind == "local":
		if s.Path != "" && filepath.Clean(s.Path) == filepath.Clean(other.Path) {
			return "path", s.Path
		}
	case s.Kind == "s3":
		within := nested(s.Prefix, other.Prefix)
		if strings.TrimRight(s.Endpoint, "/") == strings.TrimRight(other.Endpoint, "/") && s.Bucket == other.Bucket && within {
			return "prefix", s.Prefix
		}
	case s.Kind == "dropbox":
		same := s.AppKey == other.AppKey && s.RefreshToken == other.RefreshToken && s.Endpoint == other.Endpoint
		if same && nested(strings.ToLower(s.Folder), strings.ToLower(other.Folder)) {
			return "folder", s.Folder
		}
	}
	return "", ""
}

// nested tells whether one of two folders is the other or within it; an empty one holds all.
func nested(a, b string) bool {
	return a == "" || b == "" || strings.HasPrefix(a+"/", b+"/") || strings.HasPrefix(b+"/", a+"/")
}
