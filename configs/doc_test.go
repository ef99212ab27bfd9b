package configs

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The page of the model file names every key, with the default and the range that the program has.
func TestThePageOfTheModelFile(t *testing.T) {
	page, err := os.ReadFile("../docs/configs.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(strings.TrimSpace(line), " | "); len(cells) >= 4 && strings.HasPrefix(line, "| `") {
			rows[strings.Trim(cells[0], "|` ")] = cells[1:]
		}
	}
	settings, err := Defaults().Settings()
	if err != nil {
		t.Fatal(err)
	}
	defaults := map[string]string{}
	for _, s := range settings {
		defaults[s.Key] = s.Value
	}
	for _, key := range Required() {
		defaults[key] = "required"
	}
	defaults["name"] = "file name without .yaml"
	for _, key := range allKeys(reflect.TypeFor[Config](), "") {
		want, class := defaults[key], false
		if rest, ok := strings.CutPrefix(key, "quant.classes."); ok {
			_, part, _ := strings.Cut(rest, ".")
			key, want, class = "quant.classes.CLASS."+part, "`quant.weights."+part+"`", true
		}
		row := rows[key]
		if row == nil {
			t.Errorf("%s has no row", key)
			continue
		}
		if row[1] != want {
			t.Errorf("%s: the page gives the default %s, it is %s", key, row[1], want)
		}
		if key == "name" || row[0] == "true or false" {
			continue
		}
		out := "-1"
		if row[0] == "text" {
			out = "nothing"
		}
		if class {
			key = strings.Replace(key, "CLASS", "trunk", 1)
		}
		if _, err := Load("combo", key+"="+out); err == nil || !strings.Contains(err.Error(), key+": want "+strings.TrimSpace(row[2])) {
			t.Errorf("%s: the page gives the range %q, the program says: %v", key, row[2], err)
		}
	}
	for _, class := range overridable {
		if !strings.Contains(string(page), "| `"+string(class)+"` |") {
			t.Errorf("the class %s has no row", class)
		}
	}
	for _, name := range Builtin() {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("the built-in %s is not named", name)
		}
	}
	for _, key := range slices.Concat(keysOf(reflect.TypeFor[Config]()), []string{"extends", "quant.classes", "--set"}) {
		if !strings.Contains(string(page), "`"+key) {
			t.Errorf("%s is not named", key)
		}
	}
}

// The examples of the page are model files.
func TestExamplesOfThePage(t *testing.T) {
	page, err := os.ReadFile("../docs/configs.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(page), "```yaml\n")
	if len(parts) < 3 {
		t.Fatalf("%d examples", len(parts)-1)
	}
	for _, part := range parts[1:] {
		text, _, _ := strings.Cut(part, "```")
		if !strings.Contains(text, "extends:") {
			text = "extends: combo.yaml\n" + text
		}
		if _, err := Parse("example.yaml", []byte(text)); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
	for line := range strings.Lines(string(page)) {
		sets := strings.Split(strings.TrimSpace(line), "--set ")
		if !strings.HasPrefix(line, "    --set") {
			continue
		}
		for i := range sets {
			sets[i] = strings.Trim(sets[i], "' ")
		}
		if _, err := Load("combo", sets[1:]...); err != nil {
			t.Error(err)
		}
	}
}
