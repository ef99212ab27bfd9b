package released

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/bpe"
)

// put adds a model to a file system. Its files hold no model: this package does not look into them.
func put(t *testing.T, files fstest.MapFS, name string, change func(*Facts)) {
	t.Helper()
	f := Facts{Kind: Kind, Version: Version, Name: name, Parameters: 1234567, Files: map[string]File{}}
	f.Score.BitsPerByte = 0.81234
	for _, file := range hashed {
		content := []byte(file + " of " + name)
		files[name+"/"+file] = &fstest.MapFile{Data: content}
		f.Files[file] = FileOf(content)
	}
	if change != nil {
		change(&f)
	}
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	files[name+"/"+FactsFile] = &fstest.MapFile{Data: text}
}

func two(t *testing.T) (*Store, fstest.MapFS) {
	files := fstest.MapFS{"README.md": &fstest.MapFile{Data: []byte("no model")}}
	put(t, files, "varC", nil)
	put(t, files, "combo", nil)
	return New(files), files
}

func TestOpen(t *testing.T) {
	s, files := two(t)
	if names := strings.Join(s.Names(), " "); names != "combo varC" || s.Default() != "combo" {
		t.Errorf("%s, default %s", names, s.Default())
	}
	m, err := s.Open("varC")
	if err != nil {
		t.Fatal(err)
	}
	if m.Source != "released/varC" || string(m.Image) != "model.clm of varC" || string(m.Tokenizer) != "tokenizer.json of varC" || m.Parameters != 1234567 {
		t.Errorf("%+v", m)
	}
	delete(files, "combo/"+FactsFile)
	if s.Default() != "varC" {
		t.Errorf("without combo the default is %q", s.Default())
	}
	if none := New(fstest.MapFS{}); none.Default() != "" || len(none.Names()) != 0 {
		t.Error("an empty store has models")
	}
}

// Whatever is done to a file of a model is found: another byte, more, less, none, a folder in its place.
func TestDamage(t *testing.T) {
	for _, name := range append([]string{FactsFile}, hashed...) {
		for how, change := range map[string]func(files fstest.MapFS, path string){
			"a byte":  func(f fstest.MapFS, p string) { f[p].Data[0] ^= 1 },
			"longer":  func(f fstest.MapFS, p string) { f[p].Data = append(f[p].Data, 'x') },
			"shorter": func(f fstest.MapFS, p string) { f[p].Data = f[p].Data[:len(f[p].Data)-1] },
			"empty":   func(f fstest.MapFS, p string) { f[p].Data = nil },
			"folder":  func(f fstest.MapFS, p string) { delete(f, p); f[p+"/x"] = &fstest.MapFile{} },
			"missing": func(f fstest.MapFS, p string) { delete(f, p) },
		} {
			s, files := two(t)
			change(files, "combo/"+name)
			_, err := s.Open("combo")
			if name == FactsFile && how == "missing" {
				if !errors.Is(err, ErrUnknown) {
					t.Errorf("without facts: %v", err)
				}
				continue
			}
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "combo") {
				t.Errorf("%s, %s: %v", name, how, err)
			}
			if _, err := s.Open("varC"); err != nil {
				t.Errorf("the other model: %v", err)
			}
		}
	}
}

func TestFactsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts)
		is     error
	}{
		"newer":        {func(f *Facts) { f.Version++ }, ErrVersion},
		"other kind":   {func(f *Facts) { f.Kind = "chiplm export" }, ErrDamaged},
		"other name":   {func(f *Facts) { f.Name = "varC" }, ErrDamaged},
		"a path":       {func(f *Facts) { f.Name = "../combo" }, ErrDamaged},
		"a file less":  {func(f *Facts) { delete(f.Files, CardFile) }, ErrDamaged},
		"another file": {func(f *Facts) { f.Files["x"] = f.Files[CardFile]; delete(f.Files, CardFile) }, ErrDamaged},
	} {
		files := fstest.MapFS{}
		put(t, files, "combo", c.change)
		if _, err := New(files).Open("combo"); !errors.Is(err, c.is) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnknown(t *testing.T) {
	s, _ := two(t)
	for name, want := range map[string]string{"comb": "did you mean combo?", "entirely-else": "there are combo, varC", "..": "there are", "": "there are"} {
		if _, err := s.Open(name); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := New(fstest.MapFS{}).Open("combo"); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "carries none") {
		t.Errorf("of none: %v", err)
	}
}

// A user's own go before released models, a folder that has nothing to do with models hides none, and what was taken is said.
func TestFind(t *testing.T) {
	s, _ := two(t)
	ctx := With(t.Context(), s)
	t.Chdir(t.TempDir())
	find := func(name string) (string, string, error) {
		var notes strings.Builder
		f, err := Find(ctx, "runs", name, &notes)
		if f.Model != nil {
			return f.Model.Source, notes.String(), err
		}
		return f.Path, notes.String(), err
	}
	check := func(name, want, note string) {
		t.Helper()
		if got, notes, err := find(name); err != nil || got != want || !strings.Contains(notes, note) || (note == "") != (notes == "") {
			t.Errorf("%q is %q (%q), %v; want %q (%q)", name, got, notes, err, want, note)
		}
	}
	check("", "released/combo", "nothing was trained under runs")
	check("varC", "released/varC", "the released model varC")
	check("released/varC", "released/varC", "")
	for name, want := range map[string]string{"vraC": "did you mean varC?", "released/vraC": "did you mean varC?"} {
		if _, _, err := find(name); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}

	mkdir := func(path string) {
		t.Helper()
		if err := os.MkdirAll(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	mkdir("varC/photos")
	check("varC", "released/varC", "none of a model")
	mkdir("runs/varC/step-00000001")
	check("varC", filepath.Join("runs", "varC"), "your own")
	check("released/varC", "released/varC", "")
	mkdir("released/varC/photos")
	check("released/varC", "released/varC", "")
	mkdir("runs/released/varC/step-00000001")
	check("released/varC", "released/varC", "")
	mkdir("runs/mine/step-00000001")
	check("mine", filepath.Join("runs", "mine"), "")
	// A run that cannot be read is an error, and no reason to take another model in its place.
	if err := os.WriteFile("runs/mine/step-00000001/"+checkpoints.DoneFile, []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	if got, _, err := find(""); err == nil {
		t.Errorf("with a damaged run, %q was taken", got)
	}
	// Without released models everything is as it was.
	ctx = With(t.Context(), New(fstest.MapFS{}))
	check("mine", filepath.Join("runs", "mine"), "")
	if _, _, err := find("combo"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("combo of none: %v", err)
	}
}

func TestFindFolder(t *testing.T) {
	files := fstest.MapFS{}
	put(t, files, "combo", nil)
	dir := t.TempDir()
	if err := os.CopyFS(dir, files); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "combo")
	f, err := Find(t.Context(), "none", path, &strings.Builder{})
	if err != nil || f.Model == nil || f.Model.Source != path {
		t.Errorf("%+v, %v", f, err)
	}
	if err := os.WriteFile(filepath.Join(path, CardFile), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(t.Context(), "none", path, &strings.Builder{}); !errors.Is(err, ErrDamaged) {
		t.Errorf("damaged: %v", err)
	}
}

func TestCommand(t *testing.T) {
	s, _ := two(t)
	call := func(s *Store, args ...string) (string, error) {
		var out bytes.Buffer
		cmd := Command()
		cmd.SetArgs(args)
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err := cmd.ExecuteContext(With(t.Context(), s))
		return out.String(), err
	}
	if out, err := call(s); err != nil || !strings.Contains(out, "varC   1,234,567     0.8123") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err := call(s, "--json")
	var list struct{ Models []Facts }
	if err != nil || json.Unmarshal([]byte(out), &list) != nil || len(list.Models) != 2 || list.Models[1].Score.BitsPerByte != 0.81234 {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := call(s, "combo"); err != nil || !strings.HasPrefix(out, "# combo\n") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := call(s, "released/combo"); err != nil || !strings.HasPrefix(out, "# combo\n") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := call(s, "comb"); !errors.Is(err, ErrUnknown) {
		t.Errorf("%v", err)
	}
	if out, err := call(New(fstest.MapFS{})); err != nil || !strings.Contains(out, "no released models") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := call(New(fstest.MapFS{}), "--json"); err != nil || strings.Join(strings.Fields(out), "") != `{"models":[]}` {
		t.Errorf("%v\n%s", err, out)
	}
	names, _ := Command().ValidArgsFunction(withContext(t, s), nil, "")
	if strings.Join(names, " ") != "combo varC" {
		t.Errorf("a shell is offered %q", names)
	}
}

func withContext(t *testing.T, s *Store) *cobra.Command {
	cmd := &cobra.Command{}
	cmd.SetContext(With(t.Context(), s))
	return cmd
}

// The models that the program carries: their card says what the facts say, and these what configuration and tokenizer say.
func TestEmbedded(t *testing.T) {
	s := Embedded()
	for _, name := range s.Names() {
		t.Run(name, func(t *testing.T) {
			m, err := s.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			if FileOf(m.Card()) != m.Files[CardFile] {
				t.Errorf("the card is not the one that the facts make: chiplm release writes it")
			}
			c, err := configs.Parse(ConfigFile, m.Config)
			if err != nil {
				t.Fatal(err)
			}
			if c.Name != name || c.Parameters() != m.Parameters || c.VocabSize != m.VocabSize || c.ContextLength != m.ContextLength ||
				c.Budget().Total.TokenRead != m.BytesPerToken || int64(c.Train.Seed) != m.Training.Seed || int64(len(m.Image)) != m.ImageBytes {
				t.Errorf("the facts %+v are not those of the configuration", m.Facts)
			}
			// Keys that model files were given since are not in it, so the file is hashed and not what was read of it.
			if FileOf(m.Config).SHA256 != m.ConfigSHA256 {
				t.Errorf("%s has not the hash %s", ConfigFile, m.ConfigSHA256)
			}
			tok, err := bpe.Parse(m.Tokenizer)
			if err != nil {
				t.Fatal(err)
			}
			if tok.Hash() != m.TokenizerSHA256 || tok.Size() > c.VocabSize {
				t.Errorf("a tokenizer of %d entries with the hash %s", tok.Size(), tok.Hash())
			}
			for _, text := range []string{m.Text.Name, m.Score.Stories} {
				if strings.ContainsAny(text, "/\\") {
					t.Errorf("%q is a path of the machine that trained", text)
				}
			}
			if m.Text.Licence == "" || m.Score.BitsPerByte <= 0 || m.Passes() <= 0 {
				t.Errorf("%+v", m.Facts)
			}
		})
	}
}
