-- SPDX-License-Identifier: GPL-2.0
-- wrk's report as JSON, for run_memcached.py: each response time (in us) with how many had
-- it, not percentiles of them.

local think

function init(args)
	think = tonumber(args[1])
end

-- Milliseconds before each request.
function delay()
	return think
end

function done(summary, latency, requests)
	local times = {}
	for i = 1, #latency do
		times[i] = string.format("[%d, %d]", latency(i))
	end
	local e = summary.errors
	io.write(string.format('\n{"requests": %d, "failed": %d, "times_us": [%s]}\n',
		summary.requests, e.connect + e.read + e.write + e.status + e.timeout,
		table.concat(times, ", ")))
end
