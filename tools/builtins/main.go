// Prints what the Go types of the built-in kinds say and their OpenAPI schemas do not: the order of fields,
// omitempty and omitzero, Go's names of types (which decoding errors quote), and the columns of tables.
//
// Run it in a module that requires k8s.io/kubernetes; generate.py does so and writes the package's data.
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kubernetes/pkg/printers"
	printersinternal "k8s.io/kubernetes/pkg/printers/internalversion"
)

// A field is [JSON name, omission (1 omitempty, 2 omitzero, 3 both, 4 only null), type, embedded struct's name if any].
type field []any

var (
	types       = map[string]any{}
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
)

// expression names a type in Go's syntax with import paths, and records named types on the way.
func expression(t reflect.Type) string {
	if t.PkgPath() != "" {
		record(t)
		return key(t)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + expression(t.Elem())
	case reflect.Slice:
		return "[]" + expression(t.Elem())
	case reflect.Map:
		return "map[" + expression(t.Key()) + "]" + expression(t.Elem())
	}
	return t.String()
}

func key(t reflect.Type) string { return strings.TrimPrefix(t.PkgPath(), "k8s.io/") + "." + t.Name() }

func record(t reflect.Type) {
	name := key(t)
	if _, seen := types[name]; seen {
		return
	}
	types[name] = nil
	switch {
	case reflect.PointerTo(t).Implements(unmarshaler):
		types[name] = "!" + t.Name()
	case t.Kind() == reflect.Struct:
		types[name] = fields(t, "")
	case t.Kind() == reflect.Slice:
		types[name] = "[]" + expression(t.Elem())
	case t.Kind() == reflect.Map:
		types[name] = "map[" + expression(t.Key()) + "]" + expression(t.Elem())
	default:
		types[name] = t.Kind().String()
	}
}

func fields(t reflect.Type, embedded string) []field {
	out := []field{}
	for i := range t.NumField() {
		f := t.Field(i)
		tag := strings.Split(f.Tag.Get("json"), ",")
		if f.Anonymous && tag[0] == "" {
			out = append(out, fields(f.Type, strings.TrimPrefix(embedded+"."+f.Name, "."))...)
			continue
		}
		if tag[0] == "-" || !f.IsExported() {
			continue
		}
		omission := 0
		for _, option := range tag[1:] {
			switch option {
			case "omitempty":
				omission |= 1
			case "omitzero":
				omission |= 2
			}
		}
		if judgedWhenEmpty[f.Type.Name()] {
			omission = 4
		}
		entry := field{tag[0], omission, expression(f.Type)}
		if embedded != "" && embedded != "TypeMeta" {
			entry = append(entry, embedded)
		}
		out = append(out, entry)
	}
	return out
}

// judgedWhenEmpty are the maps that validation refuses even if they are empty: they must not be lost while decoding.
var judgedWhenEmpty = map[string]bool{"JSONSchemaDependencies": true}

// tables collects the columns of each kind by the Go type of what its print function takes.
type tables map[string][]metav1.TableColumnDefinition

func (t tables) TableHandler(columns []metav1.TableColumnDefinition, print any) error {
	of := reflect.TypeOf(print).In(0).Elem()
	t[strings.TrimPrefix(of.PkgPath(), "k8s.io/kubernetes/pkg/apis/")+"."+of.Name()] = columns
	return nil
}

var _ printers.PrintHandler = tables{}

func main() {
	kinds := map[string]string{}
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensions.AddToScheme, apiregistration.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	for gvk, t := range s.AllKnownTypes() {
		if strings.HasPrefix(gvk.Version, "v1alpha") || strings.HasPrefix(gvk.Version, "v1beta") || strings.HasPrefix(gvk.Version, "v2beta") ||
			strings.HasSuffix(gvk.Kind, "List") || strings.HasSuffix(gvk.Kind, "Options") || strings.HasPrefix(t.PkgPath(), "k8s.io/apimachinery") {
			continue
		}
		kinds[gvk.GroupVersion().String()+"/"+gvk.Kind] = expression(t)
	}
	columns := tables{}
	printersinternal.AddHandlers(columns)
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(map[string]any{"kinds": kinds, "types": types, "columns": columns}); err != nil {
		panic(err)
	}
}
