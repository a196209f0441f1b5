// capacity_load does what its standard input says, a line each, and answers each line with one of JSON:
//
//	watch N        keep N watches of all objects open
//	write N        N merge patches of N objects, by all clients; waits until every watch has seen all of them
//	paced N S      N merge patches, spread evenly over S seconds
//	get N          N GETs of single objects
//	pages N        all objects, in pages of N
//	label S        the list of those that a label selector selects
//
// Flags: those of load_client, without a definition and a template; -n objects are there, named by name().
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const path = "/apis/capacity.example.com/v1/namespaces/default/things"

var (
	seen    atomic.Int64
	broken  atomic.Int64
	written int
)

func main() {
	flag.Parse()
	client = &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 1024,
		DisableCompression:  true,
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true},
		TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{},
	}}
	var watches []context.CancelFunc
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		number, _ := strconv.Atoi(words[1])
		var answer any
		switch words[0] {
		case "watch":
			watches = watch(watches, number)
			answer = map[string]int{"open": len(watches)}
		case "write":
			answer = write(number, len(watches), 0)
		case "paced":
			seconds, _ := strconv.ParseFloat(words[2], 64)
			answer = write(number, len(watches), time.Duration(seconds*float64(time.Second)))
		case "get":
			answer = measure(number, 200, func(i int) (string, string, []byte) {
				return "GET", path + "/" + name(i%*count), nil
			}, func(int, []byte) {})
		case "pages":
			answer = pages(number)
		case "label":
			answer = list(url.Values{"labelSelector": {words[1]}})
		}
		raw, _ := json.Marshal(answer)
		fmt.Println(string(raw))
	}
}

// watch opens or ends watches until there are so many; each has a connection of its own.
func watch(open []context.CancelFunc, wanted int) []context.CancelFunc {
	for len(open) > wanted {
		open[len(open)-1]()
		open = open[:len(open)-1]
	}
	_, raw := call("GET", path+"?limit=1", nil)
	var now listing
	_ = json.Unmarshal(raw, &now)
	var opening sync.WaitGroup
	added := make([]context.CancelFunc, max(wanted-len(open), 0))
	turns := make(chan struct{}, 32)
	for i := range added {
		opening.Add(1)
		turns <- struct{}{}
		ctx, cancel := context.WithCancel(context.Background())
		added[i] = cancel
		go func() {
			query := path + "?watch=1&allowWatchBookmarks=false&resourceVersion=" + now.Metadata.ResourceVersion
			request, _ := http.NewRequestWithContext(ctx, "GET", *server+query, nil)
			request.Header.Set("Authorization", "Bearer "+*token)
			response, err := client.Do(request)
			if err != nil || response.StatusCode != 200 {
				fail("a watch cannot be opened:", err, response)
			}
			<-turns
			opening.Done()
			follow(ctx, response)
		}()
	}
	opening.Wait()
	return append(open, added...)
}

func follow(ctx context.Context, response *http.Response) {
	buffer := make([]byte, 4096)
	for {
		n, err := response.Body.Read(buffer)
		for _, each := range buffer[:n] {
			if each == '\n' {
				seen.Add(1)
			}
		}
		if err != nil {
			if ctx.Err() == nil {
				broken.Add(1)
			}
			return
		}
	}
}

type outcome struct {
	result
	Events  int64   `json:"events"`
	Broken  int64   `json:"broken"`
	Seconds float64 `json:"seconds"`
}

func write(total, watches int, during time.Duration) outcome {
	before, started := seen.Load(), time.Now()
	first := written
	written += total
	done := measure(total, 200, func(i int) (string, string, []byte) {
		if i > 0 && during > 0 {
			time.Sleep(time.Until(started.Add(during * time.Duration(i) / time.Duration(total))))
		}
		object := name((first + i) * 7919 % *count)
		return "MERGE", path + "/" + object, []byte(fmt.Sprintf(`{"spec":{"turn":%d}}`, first+i))
	}, func(int, []byte) {})
	for seen.Load()-before < int64(total*watches) && broken.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	return outcome{done, seen.Load() - before, broken.Load(), time.Since(started).Seconds()}
}

type listing struct {
	Metadata struct {
		Continue        string `json:"continue"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Items []json.RawMessage `json:"items"`
}

type listed struct {
	Items    int     `json:"items"`
	Requests int     `json:"requests"`
	Seconds  float64 `json:"seconds"`
	Longest  float64 `json:"longest_ms"`
	Bytes    int     `json:"bytes"`
}

func list(query url.Values) (all listed) {
	for {
		started := time.Now()
		status, raw := call("GET", path+"?"+query.Encode(), nil)
		took := time.Since(started).Seconds()
		var page listing
		if err := json.Unmarshal(raw, &page); status != 200 || err != nil {
			fail("a list failed:", status, err)
		}
		all.Items += len(page.Items)
		all.Requests++
		all.Seconds += took
		all.Longest = max(all.Longest, took*1000)
		all.Bytes += len(raw)
		if page.Metadata.Continue == "" {
			return
		}
		query.Set("continue", page.Metadata.Continue)
	}
}

func pages(limit int) listed {
	return list(url.Values{"limit": {strconv.Itoa(limit)}})
}
