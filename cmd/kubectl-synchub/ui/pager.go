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
	"maps"
	"net/url"
	"strconv"
)

// pager is a part of a long list. Its addresses keep the other parameters of the page.
type pager struct {
	// What are the items, in messages. From and To are the numbers of the first and the last one on the page.
	What            string
	From, To, Total int
	Previous, Next  string
}

// newPager returns the page that a parameter selects of a list.
func newPager(address url.URL, query url.Values, parameter, what string, total, size int) pager {
	pages := max((total+size-1)/size, 1)
	page, _ := strconv.Atoi(query.Get(parameter))
	page = min(max(page, 1), pages)
	p := pager{What: what, From: (page-1)*size + 1, To: min(page*size, total), Total: total}
	if page > 1 {
		p.Previous = withParameter(address, query, parameter, strconv.Itoa(page-1))
	}
	if page < pages {
		p.Next = withParameter(address, query, parameter, strconv.Itoa(page+1))
	}
	return p
}

// itemsOf returns the items on a page.
func itemsOf[T any](p pager, all []T) []T {
	if len(all) == 0 {
		return nil
	}
	return all[p.From-1 : p.To]
}

// withParameter returns the address with another value of a parameter. An empty value removes it.
func withParameter(address url.URL, query url.Values, parameter, value string) string {
	changed := maps.Clone(query)
	if changed == nil {
		changed = url.Values{}
	}
	changed.Del(parameter)
	if value != "" {
		changed.Set(parameter, value)
	}
	address.RawQuery = changed.Encode()
	return address.String()
}
