// What Telegraf's input for HAProxy makes of each address of the command line: its metrics, line by line on standard output.
package main

import (
	"fmt"
	"os"
	"sort"
	"time"

	"github.com/influxdata/telegraf"
	"github.com/influxdata/telegraf/plugins/inputs/haproxy"
)

// An accumulator that keeps what comes from an input.
type gathered struct {
	telegraf.Accumulator
	lines []string
}

func (g *gathered) AddFields(name string, fields map[string]interface{}, tags map[string]string, _ ...time.Time) {
	line := fmt.Sprintln(name, tags["type"], tags["proxy"], tags["sv"], fields["status"], fields["stot"],
		fields["http_response.2xx"], fields["weight"], fields["mode"], len(fields) > 40)
	g.lines = append(g.lines, line)
}

func (g *gathered) AddError(err error) {
	g.lines = append(g.lines, "error: "+err.Error()+"\n")
}

func main() {
	for _, address := range os.Args[1:] {
		var found gathered
		input := haproxy.HAProxy{Servers: []string{address}}
		if err := input.Gather(&found); err != nil {
			found.AddError(err)
		}
		sort.Strings(found.lines)
		for _, line := range found.lines {
			fmt.Print(line)
		}
	}
}
