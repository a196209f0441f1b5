// schema_load creates and updates objects of one kind as fast as some clients can, and prints what it measured as JSON:
// operations per second, and latencies in milliseconds, for each phase. It is the same client for every server.
//
//	schema_load -server https://127.0.0.1:6443 -token T -definition crd.json -object object.json -n 2000 -c 16
//
// The object's name is a template: its last digits are replaced by each object's number. An update is what a client
// sends that has read the object: all of it, managedFields too, with one change below spec.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
)

var rounds = flag.Int("updates", 2, "updates of each object")

func main() {
	base, template := begin()
	bodies := make([][]byte, *count)
	for i := range bodies {
		bodies[i] = []byte(strings.ReplaceAll(template, name(0), name(i)))
	}
	results := map[string]result{}
	stored := make([][]byte, *count)
	results["create"] = measure(*count, 201,
		func(i int) (string, string, []byte) { return "POST", base, bodies[i] },
		func(i int, raw []byte) { stored[i] = raw })
	for round := range *rounds {
		for i, raw := range stored {
			bodies[i] = changed(raw, round)
		}
		found := measure(*count, 200,
			func(i int) (string, string, []byte) { return "PUT", base + "/" + name(i), bodies[i] },
			func(i int, raw []byte) { stored[i] = raw })
		results[fmt.Sprintf("update_%d", round+1)] = found
	}
	json.NewEncoder(os.Stdout).Encode(results)
}

// changed is an object as it was answered, with another number of replicas and another setting.
func changed(raw []byte, round int) []byte {
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		fail(err)
	}
	spec := object["spec"].(map[string]any)
	spec["replicas"] = 10 + round
	spec["config"].(map[string]any)["setting-0"] = fmt.Sprintf("changed in round %d", round)
	body, _ := json.Marshal(object)
	return body
}
