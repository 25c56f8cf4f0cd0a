package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed assets
var assetFiles embed.FS

//go:embed tmpl
var sheetFiles embed.FS

// assets are the files that pages name, by the names that they have there: with a digest, so that a browser may keep them.
type assets struct {
	byName map[string]asset
	names  map[string]string // of the file → with the digest
}

type asset struct {
	kind string
	text []byte
}

func loadAssets() assets {
	a := assets{byName: map[string]asset{}, names: map[string]string{}}
	list, err := fs.Glob(assetFiles, "assets/*")
	if err != nil {
		panic("web: " + err.Error())
	}
	for _, file := range list {
		text, err := assetFiles.ReadFile(file)
		if err != nil {
			panic("web: " + err.Error())
		}
		sum := sha256.Sum256(text)
		base, ext := path.Base(file), path.Ext(file)
		name := strings.TrimSuffix(base, ext) + "-" + hex.EncodeToString(sum[:6]) + ext
		a.byName[name], a.names[base] = asset{mime.TypeByExtension(ext), text}, name
	}
	return a
}

// address is the path of a file.
func (a assets) address(file string) string { return "/assets/" + a.names[file] }

func (a assets) serve(w http.ResponseWriter, r *http.Request) {
	f, ok := a.byName[r.PathValue("name")]
	if !ok {
		http.Error(w, "There is no such file.", http.StatusNotFound)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable") // another text has another name
	w.Header().Set("Content-Type", f.kind)
	_, _ = w.Write(f.text) // as in send
}
