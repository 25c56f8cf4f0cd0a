package offline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/fencepost/fencepost/configs"
	"github.com/fencepost/fencepost/pipeline"
	"github.com/fencepost/fencepost/pipeline/source"
)

// States of an examination.
const (
	ExamOK      = "ok"
	ExamWarning = "warning"
	ExamFailed  = "failed"
	ExamSkipped = "skipped" // it could not be looked at, or need not be
)

// Exam is one thing that was looked at.
type Exam struct {
	What  string `json:"what"`  // configuration, home, disk, port, seed, key file, certificate, clock, database, storage, node
	About string `json:"about"` // path, address, name
	State string `json:"state"` // ok, warning, failed, skipped
	Found string `json:"found"`
	Hint  string `json:"hint,omitempty"` // how it is mended
}

// DoctorOptions say what is examined.
type DoctorOptions struct {
	Config string // configuration file of the node
	// Running: a daemon of this configuration runs, so its ports are taken rightly.
	Running bool
	// Reading leaves the storages unwritten: their owners are read, nothing is put there.
	Reading bool
	// Settings are those of the group, with the databases that were found on its servers; nil: they are not known.
	Settings *configs.Settings
}

// examWithin bounds what one database, storage or seed may take.
const examWithin = 30 * time.Second

// Examine looks whether a node with this configuration can work here: before it is started and while it runs. Nothing is
// changed, but for a few objects that are put into each storage and removed again. It stops early when the configuration is
// not valid.
func Examine(ctx context.Context, o DoctorOptions) []Exam {
	c, err := configs.Load(o.Config)
	if err != nil {
		return invalid(o.Config, err)
	}
	exams := []Exam{{What: "configuration", About: o.Config, State: ExamOK, Found: "valid"}}
	if o.Settings != nil {
		var problems []configs.Problem
		c, problems = c.With(*o.Settings)
		for _, p := range problems {
			exams = append(exams, Exam{What: "settings", About: p.Path, State: ExamWarning, Found: p.Text})
		}
	}
	exams = append(exams, examineSecrets(c, o.Settings)...)
	exams = append(exams, examineKeys(c)...)
	exams = append(exams, examineHome(c.Home)...)
	exams = append(exams, examinePorts(ctx, c, o.Running)...)
	var clocks []skew
	for _, d := range c.Databases {
		e, clock := examineDatabase(ctx, d)
		exams = append(exams, e)
		if clock != nil {
			clocks = append(clocks, *clock)
		}
	}
	exams = append(exams, examineClock(clocks)...)
	for _, s := range c.Storages {
		exams = append(exams, examineStorage(ctx, o, s))
	}
	return exams
}

// invalid has one exam for each thing that is wrong in a configuration.
func invalid(file string, err error) []Exam {
	const hint = "configs/node.example.yaml explains every key"
	var bad *configs.Error
	if !errors.As(err, &bad) {
		return []Exam{{What: "configuration", About: file, State: ExamFailed, Found: err.Error(), Hint: "`fencepost init` writes one per node"}}
	}
	var exams []Exam
	for _, p := range bad.Problems {
		exams = append(exams, Exam{What: "configuration", About: p.Path, State: ExamFailed, Found: p.Text, Hint: hint})
	}
	return exams
}

// skew is how far the clock of a server is ahead of this machine's.
type skew struct {
	database string
	ahead    time.Duration
}

// TryDatabase is the examination of one database by itself.
func TryDatabase(ctx context.Context, d configs.Database) Exam {
	e, _ := examineDatabase(ctx, d)
	return e
}

// examineDatabase begins a dump, which asks for all that one needs: that the server answers, that a client program fits it,
// that the role may read everything. Then it is closed again, without a byte read.
func examineDatabase(ctx context.Context, d configs.Database) (Exam, *skew) {
	ctx, cancel := context.WithTimeout(ctx, examWithin)
	defer cancel()
	e := Exam{What: "database", About: d.Name, State: ExamFailed}
	src, err := OpenSource(d, slog.New(slog.DiscardHandler))
	if err != nil {
		e.Found, e.Hint = err.Error(), orElse(hintOf(err), "see databases in the configuration")
		return e, nil
	}
	if d.Scratch {
		e.State, e.Found = ExamSkipped, "a scratch server: it is tried by fencepost verify --scratch "+d.Name
		return e, nil
	}
	before := time.Now()
	dump, err := src.Dump(ctx, source.Attempt{Task: pipeline.NewID(before), Token: 1})
	if err != nil {
		e.Found, e.Hint = err.Error(), orElse(hintOf(err), "try it by hand: psql with the same dsn")
		return e, nil
	}
	info := dump.Info()
	after := time.Now()
	if err := dump.Close(); err != nil {
		e.Found = err.Error()
		return e, nil
	}
	e.State, e.Found = ExamOK, fmt.Sprintf("server %s, program %s, all of it may be read", info.ServerVersion, info.ToolVersion)
	if info.AsOf.IsZero() {
		return e, nil
	}
	return e, &skew{d.Name, info.AsOf.Sub(before.Add(after.Sub(before) / 2))}
}

// clockOff is from when on a clock is wrong, beyond what the connection took.
const clockOff = 30 * time.Second

// examineClock compares this machine's clock with those of the database servers.
func examineClock(all []skew) []Exam {
	var exams []Exam
	for _, s := range all {
		e := Exam{What: "clock", About: s.database, State: ExamOK, Found: "this machine and the database's server agree"}
		if s.ahead.Abs() > clockOff {
			way := "behind"
			if s.ahead < 0 {
				way = "ahead of"
			}
			e.State, e.Found = ExamWarning, fmt.Sprintf("this machine's clock is %s %s that of the database's server", s.ahead.Abs().Round(time.Second), way)
			e.Hint = "have both set by NTP: timedatectl set-ntp true"
		}
		exams = append(exams, e)
	}
	return exams
}

func examineStorage(ctx context.Context, o DoctorOptions, s configs.Storage) Exam {
	ctx, cancel := context.WithTimeout(ctx, examWithin)
	defer cancel()
	e := Exam{What: "storage", About: s.Name, State: ExamFailed}
	if s.Kind == "mem" {
		e.State, e.Found, e.Hint = ExamWarning, "keeps backups in the memory of the process: they are gone with it", "for trying out only"
		return e
	}
	at := StorageOptions{Config: o.Config, Storage: s.Name, Settings: o.Settings}
	if o.Reading {
		owner, err := ownerOf(ctx, at)
		if err != nil {
			e.Found, e.Hint = err.Error(), orElse(hintOf(err), "fencepost storage test "+s.Name+" --config "+o.Config)
			return e
		}
		e.State, e.Found = ExamOK, ownedWords(owner)
		return e
	}
	p, err := ProbeStorage(ctx, at, s.AppendOnly)
	if err != nil {
		e.Found, e.Hint = err.Error(), orElse(hintOf(err), "fencepost storage test "+s.Name+" --config "+o.Config)
		return e
	}
	for _, step := range p.Steps {
		if step.Problem != "" {
			e.Found, e.Hint = step.Step+": "+step.Problem, "fencepost storage test "+s.Name+" --config "+o.Config+" shows every step"
			return e
		}
	}
	if len(p.Warnings) > 0 {
		e.State, e.Found, e.Hint = ExamWarning, p.Warnings[0], "fencepost storage test "+s.Name+" --config "+o.Config+" shows every step"
		return e
	}
	e.State, e.Found = ExamOK, "can be written and read; "+ownedWords(p.Owner)
	return e
}

func ownedWords(o OwnedBy) string {
	if o.Cluster == "" {
		return "nobody's yet"
	}
	return "of group " + o.Cluster
}

// ownerOf reads who owns a storage, and writes nothing.
func ownerOf(ctx context.Context, o StorageOptions) (OwnedBy, error) {
	one, err := openBare(o, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		return OwnedBy{}, err
	}
	defer one.close()
	owner, err := one.owner(ctx)
	return ownedBy(owner), err
}

func hintOf(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}

func orElse(text, otherwise string) string {
	if text != "" {
		return text
	}
	return otherwise
}
