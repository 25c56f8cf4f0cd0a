package configs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/viper"
)

// Prefix is what the names of all environment variables of ours begin with.
const Prefix = "FENCEPOST_"

// Load reads the file at path and the process's environment into a valid Config. The
// error is an *Error when the file could be read but something in it is wrong.
func Load(path string) (*Config, error) { return LoadWith(path, os.Environ()) }

// LoadWith is Load with the environment (NAME=value, as os.Environ gives it) as a value.
func LoadWith(path string, environ []string) (*Config, error) {
	c, ps, err := read(path, environ)
	if err != nil {
		return nil, err
	}
	var invalid *Error
	if len(ps) == 0 && errors.As(c.Validate(), &invalid) {
		ps = invalid.Problems
	}
	if err := ps.err(path); err != nil {
		return nil, err
	}
	return c, nil
}

// read is Load without the rules of Validate.
func read(path string, environ []string) (*Config, problems, error) {
	v, err := open(path)
	if err != nil {
		return nil, nil, err
	}
	d := Default()
	for name, value := range encode(reflect.ValueOf(d)).(map[string]any) {
		setDefaults(v, name, value)
	}
	variables := applyEnvironment(v, environ)

	var c Config
	var ps problems
	decode(v.AllSettings(), reflect.ValueOf(&c).Elem(), "", &ps)
	return &c, append(ps, unknownVariables(variables, &c)...), nil
}

func open(path string) (*viper.Viper, error) {
	v := viper.New()
	v.SetConfigFile(path)
	v.SetConfigType("yaml")
	err := v.ReadInConfig()
	var syntax viper.ConfigParseError
	switch {
	case errors.As(err, &syntax):
		return nil, &Error{File: path, Problems: []Problem{{Path: "yaml", Text: oneLine(syntax.Unwrap())}}}
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read the configuration: %w: `fencepost init` writes one", err)
	case err != nil:
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	return v, nil
}

// quoted is what the YAML parser repeats of a file's values; it could be a password.
var quoted = regexp.MustCompile("`.*`|'.*'")

func oneLine(err error) string {
	text := strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " ")
	return quoted.ReplaceAllString(text, "...")
}

func setDefaults(v *viper.Viper, path string, value any) {
	if section, ok := value.(map[string]any); ok {
		for name, value := range section {
			setDefaults(v, join(path, name), value)
		}
		return
	}
	v.SetDefault(path, value)
}

// applyEnvironment puts the variables that are keys over what the file says, and gives
// the names of those that are not.
func applyEnvironment(v *viper.Viper, environ []string) (unknown []string) {
	paths := map[string]string{}
	for _, f := range leaves(reflect.TypeFor[Config](), "") {
		if !f.list() {
			paths[variable(f.path)] = f.path
		}
	}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, Prefix) || value == "" {
			continue
		}
		if path, ok := paths[name]; ok {
			v.Set(path, value)
			continue
		}
		unknown = append(unknown, name)
	}
	slices.Sort(unknown)
	return unknown
}

// variable is the name of the environment variable for a key.
func variable(path string) string {
	return Prefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

// unknownVariables reports the names that are nobody's: not the program's own, and no dsn
// or key refers to them.
func unknownVariables(names []string, c *Config) problems {
	allowed := []string{Prefix + "CONFIG", Prefix + "SOCKET", Prefix + "LONG", Prefix + "SERVER", Prefix + "TOKEN_FILE", Prefix + "SERVER_CA_FILE"}
	for _, raw := range c.references() {
		if kind, name := reference(raw); kind == "env" {
			allowed = append(allowed, name)
		}
	}
	var known []string
	var ps problems
	for _, f := range leaves(reflect.TypeFor[Config](), "") {
		if !f.list() {
			known = append(known, variable(f.path))
			continue
		}
		if name := variable(f.path); slices.Contains(names, name) {
			ps.add(name, "the list %s comes from the file only; a dsn or a key may be env:NAME", f.path)
			allowed = append(allowed, name)
		}
	}
	for _, name := range names {
		if slices.Contains(allowed, name) {
			continue
		}
		remedy := ": unset it"
		if near := nearest(name, known); near != "" {
			remedy = fmt.Sprintf(": did you mean %s?", near)
		}
		ps.add(name, "unknown environment variable%s", remedy)
	}
	return ps
}

// LoadSettings reads settings from a file, or from all files of a directory whose names end in .yaml or .yml, and
// validates them together. The error is an *Error when the files could be read but something in them is wrong.
func LoadSettings(path string) (Settings, error) {
	files, err := settingsFiles(path)
	if err != nil {
		return Settings{}, fmt.Errorf("read the settings: %w", err)
	}
	var all Settings
	for _, file := range files {
		v, err := open(file)
		if err != nil {
			return all, err
		}
		var some Settings
		var ps problems
		decode(v.AllSettings(), reflect.ValueOf(&some).Elem(), "", &ps)
		if err := ps.err(file); err != nil {
			return all, err
		}
		all.Append(some)
	}
	return all, all.Named(all.Validate())
}

func settingsFiles(path string) (files []string, err error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	for _, pattern := range []string{"*.yaml", "*.yml"} {
		some, err := filepath.Glob(filepath.Join(path, pattern))
		if err != nil {
			return nil, err
		}
		files = append(files, some...)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no file in %s ends in .yaml or .yml: give another directory, or a file", path)
	}
	return files, nil
}
