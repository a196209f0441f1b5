import pytest

from steersman.api.batch.schedule import ScheduleError, check, schedule_errors, time_zone_errors


@pytest.mark.parametrize(
    "schedule",
    [
        "* * * * *",
        "*/5 0-3,7 1 jan-MAR sun",
        "0 0 ? * 6",
        "@daily",
        "@every 1h30m",
        "TZ=UTC 0 0 * * *",
        "1/2 * * * *",
        "1,,2, * * * *",
    ],
)
def test_sound_schedules(schedule):
    check(schedule)


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        ("* * *", "expected exactly 5 fields, found 3: [* * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("a * * * *", 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax'),
        ("*/1/2 * * * *", "too many slashes: */1/2"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("@often", "unrecognized descriptor: @often"),
        ("@every soon", 'failed to parse duration @every soon: time: invalid duration "soon"'),
    ],
)
def test_what_is_wrong_with_others(schedule, problem):
    with pytest.raises(ScheduleError) as caught:
        check(schedule)
    assert str(caught.value) == problem


def test_a_zone_belongs_in_its_own_field():
    inside = "TZ=UTC * * * * *"
    assert [error.detail for error in schedule_errors(inside, None, "f", zones_allowed=False)] == [
        "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
    ]
    assert schedule_errors(inside, None, "f", zones_allowed=True) == []
    assert [error.detail for error in schedule_errors(inside, "UTC", "f", zones_allowed=True)] == [
        "cannot use both timeZone field and TZ or CRON_TZ in schedule"
    ]
    assert schedule_errors(inside, "UTC", "f", zones_allowed=False) == schedule_errors(
        inside, None, "f", zones_allowed=False
    )


def test_time_zones():
    assert time_zone_errors(None, "f") == time_zone_errors("Europe/Berlin", "f") == []
    assert [error.detail for error in time_zone_errors("Mars/Base", "f")] == ["unknown time zone Mars/Base"]
    assert len(time_zone_errors("", "f")) == len(time_zone_errors("Local", "f")) == 1
