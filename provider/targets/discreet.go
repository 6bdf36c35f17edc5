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

package targets

import "strings"

// maxMessage bounds what is passed on of what a target says: it ends up in a condition.
const maxMessage = 1024

// Describe returns what an error of the target says, without the credentials that the hub sent, and cut if it is long.
func (c *Connection) Describe(err error) string {
	text := strings.ToValidUTF8(err.Error(), "?")
	for _, secret := range []string{c.bearerToken, c.password} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "(withheld)")
		}
	}
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "..."
	}
	return text
}
