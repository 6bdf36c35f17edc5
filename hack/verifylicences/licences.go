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

package main

import (
	"errors"
	"fmt"
	"strings"
)

// licence permits redistribution of code, as source and binary, together with code under Apache-2.0.
type licence struct {
	name string
	// phrases occur all in the licence's text. No other licence that comes earlier in the list has all of them.
	phrases []string
}

// allowed is in the order of comparison: of similar licences the one with more phrases comes first.
var allowed = []licence{
	{"Apache-2.0", []string{"apache license", "version 2.0, january 2004", "grant of patent license"}},
	{"MPL-2.0", []string{"mozilla public license", "version 2.0", "covered software is provided under this license on an \"as is\" basis"}},
	{"MIT", []string{"permission is hereby granted, free of charge, to any person obtaining a copy", "the above copyright notice and this permission notice"}},
	{"ISC", []string{"permission to use, copy, modify, and", "distribute this software for any purpose with or without fee is hereby granted", "the above copyright notice"}},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "redistributions of source code must retain", "may be used to endorse or promote products"}},
	{"BSD-2-Clause", []string{"redistribution and use in source and binary forms", "redistributions of source code must retain", "redistributions in binary form must reproduce"}},
}

// refused are phrases that no text may contain. They start, or are added to, licences with conditions that the
// project cannot impose on its users. The text of MPL-2.0 names some of these licences, with a comma before the
// version.
var refused = []string{
	"gnu general public license version",
	"gnu lesser general public license version",
	"gnu library general public license version",
	"gnu affero general public license version",
	"server side public license",
	"business source license",
	"commons clause",
	"all advertising materials mentioning features",
}

var errUnrecognised = errors.New("this is the text of no licence of the list in hack/verifylicences")

// recognise returns the name of the licence in the list that has this text.
func recognise(text string) (string, error) {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	for _, phrase := range refused {
		if strings.Contains(text, phrase) {
			return "", fmt.Errorf("%w: it says %q", errUnrecognised, phrase)
		}
	}
	for _, one := range allowed {
		if containsAll(text, one.phrases) {
			return one.name, nil
		}
	}
	return "", errUnrecognised
}

func containsAll(text string, phrases []string) bool {
	for _, phrase := range phrases {
		if !strings.Contains(text, phrase) {
			return false
		}
	}
	return true
}
