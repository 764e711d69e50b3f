-- shares: the shares of leaking devices that are tried, of all devices that were examined.
select share, case when share < 1 then ln(1 - share) else -12 end as none, {devices} as devices
from (select arrayJoin([1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002, 0.0001]) as share) s
