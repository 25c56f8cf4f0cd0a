package offline

import (
	"errors"
	"fmt"
	"time"

	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/gms/certs"
)

// soon is when a certificate that expires is worth a word.
const soon = 30 * 24 * time.Hour

// CheckSecurity looks whether the files of the section security are there, private, valid and this node's. The error is a
// *configs.Error; warnings are one sentence each: what will be an error soon.
func CheckSecurity(c *configs.Config, now time.Time) (warnings []string, err error) {
	var all configs.Error
	var bad *configs.Error
	if _, err := c.Security.GossipKeys(); errors.As(err, &bad) {
		all.Problems = append(all.Problems, bad.Problems...)
	} else if err != nil {
		return nil, err
	}
	if c.Security.Certified() {
		if problem := configs.PrivateFile(c.Security.KeyFile); problem != "" {
			all.Problems = append(all.Problems, configs.Problem{Path: "security.key_file", Text: problem})
		} else if until, err := checkCertificate(c); err != nil {
			all.Problems = append(all.Problems, configs.Problem{Path: "security.certificate_file", Text: err.Error()})
		} else if left := until.Sub(now); left < soon {
			warnings = append(warnings, fmt.Sprintf("%s expires in %d days, on %s: `fencepost certs renew --node %s`",
				c.Security.CertificateFile, daysLeft(until, now), until.UTC().Format(time.DateOnly), c.Node))
		}
	}
	if len(all.Problems) > 0 {
		return warnings, &all
	}
	return warnings, nil
}

// checkCertificate tells until when the node's certificate is valid.
func checkCertificate(c *configs.Config) (time.Time, error) {
	s := c.Security
	k, err := certs.NewKeeper(certs.Name{Group: c.Group, Node: c.Node}, *certs.Files(s.CertificateFile, s.KeyFile, s.CAFile), nil)
	switch {
	case errors.Is(err, certs.ErrExpired):
		return time.Time{}, fmt.Errorf("%w: `fencepost certs renew --node %s` where ca.key is", err, c.Node)
	case err != nil:
		return time.Time{}, fmt.Errorf("%w: `fencepost certs show %s` tells whose it is, `fencepost certs issue` makes one", err, s.CertificateFile)
	}
	return k.Material().Until(), nil
}
