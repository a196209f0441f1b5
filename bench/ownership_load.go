// ownership_load measures what field ownership costs, and prints it as JSON like schema_load, whose flags it has.
//
// Objects are created, applied again without a change, and applied by a second manager with one. Then a single client
// updates (PUT) objects that one manager owns, and others that five own, in turns: its rates are those of the median.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

const managers = 5

func main() {
	base, template := begin()
	var whole map[string]any
	if err := json.Unmarshal([]byte(template), &whole); err != nil {
		fail(err)
	}
	stored := make([][]byte, *count)
	bodies := make([][]byte, *count)
	keep := func(i int, raw []byte) { stored[i] = raw }
	fill := func(object any) {
		text, _ := json.Marshal(object)
		for i := range bodies {
			bodies[i] = []byte(strings.ReplaceAll(string(text), name(0), name(i)))
		}
	}
	apply := func(wanted int, manager string) result {
		query := "?force=true&fieldManager=" + manager
		return measure(*count, wanted,
			func(i int) (string, string, []byte) { return "PATCH", base + "/" + name(i) + query, bodies[i] }, keep)
	}
	results := map[string]result{}
	fill(whole)
	results["apply_create"] = apply(201, "first")
	results["apply_same"] = apply(200, "first")
	for round := range 2 {
		fill(part(whole, func(key string) bool { return key == "replicas" }, round))
		results["apply_change"] = apply(200, "second")
	}
	remove(base)

	fill(whole)
	measure(*count, 201,
		func(i int) (string, string, []byte) { return "POST", base + "?fieldManager=writer", bodies[i] }, keep)
	half := *count / 2
	for number := 1; number < managers; number++ {
		place := 0
		fill(part(whole, func(key string) bool { place++; return key != "replicas" && place%(managers-1) == number-1 }, number))
		query := fmt.Sprintf("?force=true&fieldManager=manager-%d", number)
		measure(half, 200,
			func(i int) (string, string, []byte) { return "PATCH", base + "/" + name(i) + query, bodies[i] }, keep)
	}
	*clients = 1 // so that a request waits for no other
	for round := range 3 {
		many, one := put(base, stored, bodies, round, half)
		results[fmt.Sprintf("put_%d_managers", managers)], results["put_1_manager"] = many, one
	}
	json.NewEncoder(os.Stdout).Encode(results)
}

// put updates objects as a client does that has read them, with another number of replicas: one of the first half, one
// of the second, and so on, so that both are measured under the same conditions.
func put(base string, stored, bodies [][]byte, round, half int) (first, second result) {
	for i, raw := range stored {
		var object map[string]any
		if err := json.Unmarshal(raw, &object); err != nil {
			fail(err)
		}
		object["spec"].(map[string]any)["replicas"] = 10 + round
		bodies[i], _ = json.Marshal(object)
	}
	latencies := [2][]float64{}
	failed := 0
	for k := range half {
		for side, i := range []int{k, half + k} {
			t := time.Now()
			status, raw := call("PUT", base+"/"+name(i)+"?fieldManager=writer", bodies[i])
			latencies[side] = append(latencies[side], float64(time.Since(t).Microseconds())/1000)
			stored[i] = raw
			if status != 200 {
				failed++
			}
		}
	}
	return summary(latencies[0], failed, bodies[0], stored[0]), summary(latencies[1], failed, bodies[half], stored[half])
}

func summary(latencies []float64, failed int, sent, received []byte) result {
	slices.Sort(latencies)
	median := latencies[len(latencies)/2]
	return result{Errors: failed, PerSecond: 1000 / median, P50: median, P99: latencies[len(latencies)*99/100],
		Sent: len(sent), Received: len(received)}
}

// part is what one manager applies: some fields of the spec, a label and an annotation of its own.
func part(whole map[string]any, has func(key string) bool, number int) map[string]any {
	spec := map[string]any{}
	for _, key := range keys(whole["spec"].(map[string]any)) {
		if has(key) {
			spec[key] = whole["spec"].(map[string]any)[key]
		}
	}
	if _, found := spec["replicas"]; found {
		spec["replicas"] = 100 + number
	}
	mine := map[string]any{fmt.Sprintf("example.com/manager-%d", number): "yes"}
	return map[string]any{
		"apiVersion": whole["apiVersion"],
		"kind":       whole["kind"],
		"metadata":   map[string]any{"name": name(0), "labels": mine, "annotations": mine},
		"spec":       spec,
	}
}

func keys(object map[string]any) (found []string) {
	for key := range object {
		found = append(found, key)
	}
	slices.Sort(found)
	return found
}

func remove(base string) {
	measure(*count, 200,
		func(i int) (string, string, []byte) { return "DELETE", base + "/" + name(i), nil },
		func(i int, raw []byte) {})
}
