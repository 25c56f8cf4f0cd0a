package admin

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// ofItself are the routes of the API's description and its changes.
func (h *handler) ofItself() []Route {
	return []Route{
		{
			Method: http.MethodGet, Path: api.PathOpenAPI, Action: "openapi.read", Summary: "This description of the API.", Answers: jsonType, Within: usualWithin,
			serve: func(w http.ResponseWriter, _ *http.Request) { sendBytes(w, http.StatusOK, h.description) },
		},
		{
			Method: http.MethodGet, Path: api.PathChanges, Action: "changes.read", Summary: "A stream of which resources have changed: server-sent events, each with a Change as its data.",
			Role: api.RoleViewer, Out: reflect.TypeFor[api.Change](), Answers: "text/event-stream", Within: usualWithin, serve: h.changes,
		},
	}
}

// describe is the table of routes as an OpenAPI 3.1 document.
func describe(routes []Route) []byte {
	d := describer{schemas: map[string]any{}}
	paths := map[string]map[string]any{}
	for _, r := range routes {
		if paths[r.Path] == nil {
			paths[r.Path] = map[string]any{}
		}
		paths[r.Path][strings.ToLower(r.Method)] = d.operation(r)
	}
	problem := d.schema(reflect.TypeFor[api.Problem]())
	text, err := json.MarshalIndent(map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title": "fencepost", "version": "1",
			"description": "Whatever the command fencepost does. Times are RFC 3339 in UTC, sizes are bytes, durations are milliseconds (_ms). " +
				"Every GET has an ETag and can be waited for; lists in pages have a header Link with rel=\"next\". Errors are problems (RFC 9457).",
		},
		"paths": paths,
		"components": map[string]any{
			"schemas": d.schemas,
			"responses": map[string]any{"Problem": map[string]any{
				"description": "It did not work.",
				"content":     map[string]any{api.ProblemType: map[string]any{"schema": problem}},
			}},
			"securitySchemes": map[string]any{
				"token":   map[string]any{"type": "http", "scheme": "bearer"},
				"session": map[string]any{"type": "apiKey", "in": "cookie", "name": cookieSecure},
			},
		},
	}, "", " ")
	if err != nil {
		panic("admin: the API's description was not encoded: " + err.Error())
	}
	return text
}

type describer struct{ schemas map[string]any }

func (d *describer) operation(r Route) map[string]any {
	params := []any{}
	for _, name := range r.names() {
		params = append(params, map[string]any{"name": name, "in": "path", "required": true, "schema": map[string]any{"type": "string", "maxLength": longestParam}})
	}
	for _, q := range r.Query {
		shape := map[string]any{"type": q.Type}
		if q.Type == "array" {
			shape["items"] = map[string]any{"type": "string"}
		}
		params = append(params, map[string]any{"name": q.Name, "in": "query", "description": q.Meaning, "schema": shape})
	}
	if r.Creates {
		params = append(params, map[string]any{
			"name": api.HeaderIdempotencyKey, "in": "header", "description": "a repeat with the same key and body makes nothing again, and has the first one's answer",
			"schema": map[string]any{"type": "string", "maxLength": longestKey},
		})
	}
	content := map[string]any{}
	if r.Out != nil {
		content["schema"] = d.schema(r.Out)
	}
	op := map[string]any{
		"operationId": r.Action, "summary": r.Summary, "parameters": params, "x-role": string(r.Role),
		"responses": map[string]any{
			strconv.Itoa(r.status()): map[string]any{"description": "It was done, or planned.", "content": map[string]any{r.Answers: content}},
			"default":                map[string]any{"$ref": "#/components/responses/Problem"},
		},
	}
	if r.In != nil && r.In.NumField() > 0 {
		op["requestBody"] = map[string]any{"content": map[string]any{jsonType: map[string]any{"schema": d.schema(r.In)}}}
	}
	if r.Role != "" {
		op["security"] = []any{map[string]any{"token": []any{}}, map[string]any{"session": []any{}}}
	}
	return op
}

// status is that of a good answer.
func (r Route) status() int {
	if r.Audited {
		return http.StatusAccepted
	}
	return http.StatusOK
}

var (
	timeType = reflect.TypeFor[time.Time]()
	rawType  = reflect.TypeFor[json.RawMessage]()
)

// schema is a type as JSON Schema; structs are named and referred to.
func (d *describer) schema(t reflect.Type) map[string]any {
	switch {
	case t == timeType:
		return map[string]any{"type": "string", "format": "date-time"}
	case t == rawType:
		return map[string]any{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.schema(t.Elem())
	case reflect.String:
		if t == reflect.TypeFor[api.Role]() {
			return map[string]any{"type": "string", "enum": api.Roles()}
		}
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return map[string]any{"type": "string", "contentEncoding": "base64"}
		}
		return map[string]any{"type": "array", "items": d.schema(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": d.schema(t.Elem())}
	case reflect.Struct:
		return d.object(t)
	default:
		return map[string]any{"type": "integer"}
	}
}

func (d *describer) object(t reflect.Type) map[string]any {
	name := t.Name()
	if name == "" {
		return map[string]any{"type": "object"}
	}
	ref := map[string]any{"$ref": "#/components/schemas/" + name}
	if _, known := d.schemas[name]; known {
		return ref
	}
	properties, required := map[string]any{}, []string{}
	d.schemas[name] = map[string]any{} // a type may hold itself
	for _, f := range reflect.VisibleFields(t) {
		tag, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || f.Anonymous || tag == "" {
			continue
		}
		properties[tag] = d.schema(f.Type)
		if !strings.Contains(rest, "omit") {
			required = append(required, tag)
		}
	}
	slices.Sort(required)
	d.schemas[name] = map[string]any{"type": "object", "properties": properties, "required": required}
	return ref
}
