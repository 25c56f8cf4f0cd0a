package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// document is what the tests read of the API's description.
type document struct {
	OpenAPI string                          `json:"openapi"`
	Paths   map[string]map[string]operation `json:"paths"`
	Parts   struct {
		Schemas map[string]schema `json:"schemas"`
	} `json:"components"`
}

type operation struct {
	ID         string `json:"operationId"`
	Summary    string `json:"summary"`
	Role       string `json:"x-role"`
	Parameters []struct {
		Name string `json:"name"`
		In   string `json:"in"`
	} `json:"parameters"`
	Body struct {
		Content map[string]struct {
			Schema schema `json:"schema"`
		} `json:"content"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Content map[string]struct {
			Schema schema `json:"schema"`
		} `json:"content"`
	} `json:"responses"`
	Security []map[string]any `json:"security"`
}

type schema struct {
	Ref        string            `json:"$ref"`
	Type       string            `json:"type"`
	Format     string            `json:"format"`
	Enum       []string          `json:"enum"`
	Items      *schema           `json:"items"`
	Properties map[string]schema `json:"properties"`
	Required   []string          `json:"required"`
	Additional *schema           `json:"additionalProperties"`
}

// check says how a value is not as the schema says; empty when it is. Names that no schema has are a difference too: the
// description leaves nothing out.
func (d document) check(at string, s schema, v any) string {
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		target, known := d.Parts.Schemas[name]
		if !known {
			return at + ": there is no schema " + name
		}
		return d.check(at, target, v)
	}
	switch s.Type {
	case "":
		return ""
	case "object":
		m, ok := v.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s: %T is no object", at, v)
		}
		for _, name := range s.Required {
			if _, there := m[name]; !there {
				return at + "." + name + ": is missing"
			}
		}
		for name, below := range m {
			sub, known := s.Properties[name]
			if !known && s.Additional == nil {
				return at + "." + name + ": is not described"
			}
			if !known {
				sub = *s.Additional
			}
			if problem := d.check(at+"."+name, sub, below); problem != "" {
				return problem
			}
		}
	case "array":
		list, ok := v.([]any)
		if !ok {
			return fmt.Sprintf("%s: %T is no array", at, v)
		}
		for i, below := range list {
			if problem := d.check(at+"["+strconv.Itoa(i)+"]", *s.Items, below); problem != "" {
				return problem
			}
		}
	case "string":
		text, ok := v.(string)
		if !ok {
			return fmt.Sprintf("%s: %T is no string", at, v)
		}
		if _, err := time.Parse(time.RFC3339, text); s.Format == "date-time" && err != nil {
			return at + ": " + err.Error()
		}
	case "integer":
		n, ok := v.(float64)
		if !ok || n != float64(int64(n)) {
			return fmt.Sprintf("%s: %v is no integer", at, v)
		}
	case "boolean":
		if _, ok := v.(bool); !ok {
			return fmt.Sprintf("%s: %T is no boolean", at, v)
		}
	default:
		return at + ": type " + s.Type
	}
	return ""
}

// checkAnswer wants a good answer as described.
func (d document) checkAnswer(t *testing.T, op operation, status int, header http.Header, body []byte) {
	t.Helper()
	described, ok := op.Responses[strconv.Itoa(status)]
	if !ok {
		t.Fatalf("status %d is not described: %s", status, body)
	}
	kind := header.Get("Content-Type")
	content, ok := described.Content[kind]
	if !ok {
		t.Fatalf("an answer of type %q is not described", kind)
	}
	if kind != jsonType || op.ID == "openapi.read" {
		return
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	if problem := d.check(op.ID, content.Schema, v); problem != "" {
		t.Errorf("%s\n%s", problem, body)
	}
}

// TestDescription: every route is described, with its role, its parts, its bodies; operations have names of their own.
func TestDescription(t *testing.T) {
	a := NewHandler(newFake().backend())
	var d document
	if err := json.Unmarshal(a.h.description, &d); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(d.OpenAPI, "3.1.") {
		t.Errorf("version %s", d.OpenAPI)
	}
	names, action := map[string]bool{}, regexp.MustCompile(`^[a-z]+\.[a-z]+$`)
	for _, r := range a.Routes() {
		op := d.Paths[r.Path][strings.ToLower(r.Method)]
		switch {
		case op.ID != r.Action || !action.MatchString(r.Action) || names[r.Action]:
			t.Errorf("%s: operation %q", r.pattern(), op.ID)
		case !strings.HasSuffix(op.Summary, ".") || op.Role != string(r.Role) || len(op.Security) == 0 && r.Role != "":
			t.Errorf("%s: %+v", r.pattern(), op)
		case !strings.HasPrefix(r.Path, api.Base+"/"):
			t.Errorf("%s: not below %s", r.pattern(), api.Base)
		}
		names[r.Action] = true
		for _, name := range r.names() {
			found := false
			for _, p := range op.Parameters {
				found = found || p.Name == name && p.In == "path"
			}
			if !found {
				t.Errorf("%s: part %s is not described", r.pattern(), name)
			}
		}
		body, needed := bodies[r.Action]
		content, described := op.Body.Content[jsonType]
		if needed && !described {
			t.Errorf("%s: its body is not described", r.pattern())
		}
		if needed {
			var v any
			if err := json.Unmarshal([]byte(body), &v); err != nil {
				t.Fatal(err)
			}
			content.Schema = d.loose(content.Schema)
			if problem := d.check(r.Action, content.Schema, v); problem != "" {
				t.Errorf("a good body: %s", problem)
			}
		}
	}
	for name, s := range d.Parts.Schemas {
		if s.Type != "object" || len(s.Properties) == 0 {
			t.Errorf("schema %s: %+v", name, s)
		}
	}
}

// loose is a request's schema in which nothing is required: what is left out has its zero value.
func (d document) loose(s schema) schema {
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		s = d.Parts.Schemas[name]
	}
	s.Required = nil
	return s
}
