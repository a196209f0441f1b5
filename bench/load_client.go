// What the load generators share: a client, a definition, and requests that are measured.
package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

var (
	server     = flag.String("server", "", "base URL")
	token      = flag.String("token", "", "bearer token")
	definition = flag.String("definition", "", "file with the CustomResourceDefinition")
	object     = flag.String("object", "", "file with an object named w-000000")
	count      = flag.Int("n", 2000, "objects")
	clients    = flag.Int("c", 16, "concurrent clients")
)

var client *http.Client

type result struct {
	Errors    int     `json:"errors"`
	PerSecond float64 `json:"per_second"`
	P50       float64 `json:"p50_ms"`
	P99       float64 `json:"p99_ms"`
	Sent      int     `json:"bytes_sent"`
	Received  int     `json:"bytes_received"`
}

func fail(what ...any) {
	fmt.Fprintln(os.Stderr, what...)
	os.Exit(1)
}

func call(method, path string, body []byte) (int, []byte) {
	form := "application/json"
	switch method {
	case "PATCH":
		form = "application/apply-patch+yaml"
	case "MERGE":
		method, form = "PATCH", "application/merge-patch+json"
	}
	request, err := http.NewRequest(method, *server+path, bytes.NewReader(body))
	if err != nil {
		fail(err)
	}
	request.Header.Set("Content-Type", form)
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Authorization", "Bearer "+*token)
	response, err := client.Do(request)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer response.Body.Close()
	raw, _ := io.ReadAll(response.Body)
	return response.StatusCode, raw
}

// measure sends total requests from all clients; request gives each one's method, path and body, which are ready.
func measure(total, wanted int, request func(i int) (string, string, []byte), answered func(i int, body []byte)) result {
	latencies := make([]float64, total)
	var next, failed atomic.Int64
	var waiting sync.WaitGroup
	_, _, first := request(0)
	received := 0
	started := time.Now()
	for range *clients {
		waiting.Add(1)
		go func() {
			defer waiting.Done()
			for {
				i := int(next.Add(1)) - 1
				if i >= total {
					return
				}
				method, path, body := request(i)
				t := time.Now()
				status, raw := call(method, path, body)
				latencies[i] = float64(time.Since(t).Microseconds()) / 1000
				if status != wanted {
					failed.Add(1)
					if failed.Load() == 1 {
						fmt.Fprintln(os.Stderr, status, string(raw))
					}
				}
				if i == 0 {
					received = len(raw)
				}
				answered(i, raw)
			}
		}()
	}
	waiting.Wait()
	seconds := time.Since(started).Seconds()
	sort.Float64s(latencies)
	return result{
		Errors:    int(failed.Load()),
		PerSecond: float64(total) / seconds,
		P50:       latencies[total/2],
		P99:       latencies[total*99/100],
		Sent:      len(first),
		Received:  received,
	}
}

func define(crd map[string]any) (base string) {
	raw, _ := json.Marshal(crd)
	if status, answer := call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", raw); status != 201 {
		fail("cannot define the kind:", status, string(answer))
	}
	spec := crd["spec"].(map[string]any)
	plural := spec["names"].(map[string]any)["plural"]
	base = fmt.Sprintf("/apis/%s/v1/namespaces/default/%s", spec["group"], plural)
	for range 500 {
		if status, _ := call("GET", base, nil); status == 200 {
			return base
		}
		time.Sleep(20 * time.Millisecond)
	}
	fail("the kind is never served")
	return
}

func read(path string) (raw []byte) {
	raw, err := os.ReadFile(path)
	if err != nil {
		fail(err)
	}
	return raw
}

// begin reads the flags and defines the kind; it returns the path of its objects, and the object that is a template.
func begin() (base, template string) {
	flag.Parse()
	client = &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 1024,
		DisableCompression:  true,
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true},
		TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{}, // HTTP/1.1 for every server
	}}
	var crd map[string]any
	if err := json.Unmarshal(read(*definition), &crd); err != nil {
		fail(err)
	}
	return define(crd), string(read(*object))
}

func name(i int) string { return fmt.Sprintf("w-%06d", i) }
