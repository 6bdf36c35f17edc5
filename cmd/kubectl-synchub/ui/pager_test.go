/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package ui

import (
	"net/url"
	"strings"
	"testing"
)

func TestPager(t *testing.T) {
	address := url.URL{Path: "/events"}
	for name, test := range map[string]struct {
		page          string
		total         int
		from, to      int
		before, after string
	}{
		"the first":      {"", 250, 1, 100, "", "/events?page=2&q=a"},
		"one between":    {"2", 250, 101, 200, "/events?page=1&q=a", "/events?page=3&q=a"},
		"the last":       {"3", 250, 201, 250, "/events?page=2&q=a", ""},
		"beyond":         {"9", 250, 201, 250, "/events?page=2&q=a", ""},
		"before":         {"-1", 250, 1, 100, "", "/events?page=2&q=a"},
		"not a number":   {"x", 100, 1, 100, "", ""},
		"an empty table": {"", 0, 1, 0, "", ""},
	} {
		got := newPager(address, url.Values{"q": {"a"}, "page": {test.page}}, "page", "events", test.total, 100)
		if got.From != test.from || got.To != test.to || got.Previous != test.before || got.Next != test.after {
			t.Errorf("%s: got %+v", name, got)
		}
		if items := itemsOf(got, make([]int, test.total)); len(items) != test.to-test.from+1 {
			t.Errorf("%s: %d items", name, len(items))
		}
	}
}

// Texts of servers and users are on one line, short, and have no credentials.
func TestText(t *testing.T) {
	got := text("a\x1b[2J\r\nb Authorization: Bearer abc123def456 " + strings.Repeat("x", 5000))
	if len(got) > maxText || strings.ContainsAny(got, "\x1b\r\n") || strings.Contains(got, "abc123def456") {
		t.Errorf("got %q", got)
	}
}

func TestNameOfWorkspace(t *testing.T) {
	for host, want := range map[string]string{
		"https://kcp.example.com/clusters/root:fleet": "root:fleet", "https://kcp.example.com/clusters/1a2b/": "1a2b", "https://cluster.example.com": "current", ":": "current",
	} {
		if got := nameOf(host); got != want {
			t.Errorf("%s: got %q", host, got)
		}
	}
}

func mustParse(t *testing.T, address string) *url.URL {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}
