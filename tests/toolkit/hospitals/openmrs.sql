-- Tables of OpenMRS 2.7 that hold stays, patients and places, with the names, types and keys of its
-- Liquibase snapshot. Defaults, plain indexes and keys to tables that are not here (concept,
-- form, patient_program) are left out.
CREATE TABLE users (
  user_id int NOT NULL, system_id varchar(50), username varchar(50), password varchar(255),
  salt varchar(255), secret_question varchar(255), secret_answer varchar(255), creator int,
  date_created datetime, changed_by int, date_changed datetime, person_id int, retired boolean,
  retired_by int, date_retired datetime, retire_reason varchar(255), uuid char(38) UNIQUE,
  activation_key varchar(255), email varchar(255), PRIMARY KEY (user_id),
  FOREIGN KEY (creator) REFERENCES users (user_id),
  FOREIGN KEY (changed_by) REFERENCES users (user_id));
CREATE TABLE location (
  location_id int NOT NULL, name varchar(255), description varchar(255), address1 varchar(255),
  address2 varchar(255), city_village varchar(255), state_province varchar(255),
  postal_code varchar(50), country varchar(50), latitude varchar(50), longitude varchar(50),
  creator int, date_created datetime, county_district varchar(255), address3 varchar(255),
  address4 varchar(255), address5 varchar(255), address6 varchar(255), retired boolean,
  retired_by int, date_retired datetime, retire_reason varchar(255), parent_location int,
  uuid char(38) UNIQUE, changed_by int, date_changed datetime, address7 varchar(255),
  address8 varchar(255), address9 varchar(255), address10 varchar(255), address11 varchar(255),
  address12 varchar(255), address13 varchar(255), address14 varchar(255), address15 varchar(255),
  PRIMARY KEY (location_id), FOREIGN KEY (creator) REFERENCES users (user_id),
  FOREIGN KEY (parent_location) REFERENCES location (location_id));
CREATE TABLE person (
  person_id int NOT NULL, gender varchar(50), birthdate date, birthdate_estimated boolean,
  dead boolean, death_date datetime, cause_of_death int, creator int, date_created datetime,
  changed_by int, date_changed datetime, voided boolean, voided_by int, date_voided datetime,
  void_reason varchar(255), uuid char(38) UNIQUE, deathdate_estimated boolean, birthtime time,
  cause_of_death_non_coded varchar(255), PRIMARY KEY (person_id),
  FOREIGN KEY (creator) REFERENCES users (user_id));
CREATE TABLE patient (
  patient_id int NOT NULL, creator int, date_created datetime, changed_by int,
  date_changed datetime, voided boolean, voided_by int, date_voided datetime,
  void_reason varchar(255), allergy_status varchar(50), PRIMARY KEY (patient_id),
  FOREIGN KEY (patient_id) REFERENCES person (person_id),
  FOREIGN KEY (creator) REFERENCES users (user_id));
CREATE TABLE person_name (
  person_name_id int NOT NULL, preferred boolean, person_id int, prefix varchar(50),
  given_name varchar(50), middle_name varchar(50), family_name_prefix varchar(50),
  family_name varchar(50), family_name2 varchar(50), family_name_suffix varchar(50),
  degree varchar(50), creator int, date_created datetime, voided boolean, voided_by int,
  date_voided datetime, void_reason varchar(255), changed_by int, date_changed datetime,
  uuid char(38) UNIQUE, PRIMARY KEY (person_name_id),
  FOREIGN KEY (person_id) REFERENCES person (person_id),
  FOREIGN KEY (creator) REFERENCES users (user_id));
CREATE TABLE person_address (
  person_address_id int NOT NULL, person_id int, preferred boolean, address1 varchar(255),
  address2 varchar(255), city_village varchar(255), state_province varchar(255),
  postal_code varchar(50), country varchar(50), latitude varchar(50), longitude varchar(50),
  start_date datetime, end_date datetime, creator int, date_created datetime, voided boolean,
  voided_by int, date_voided datetime, void_reason varchar(255), county_district varchar(255),
  address3 varchar(255), address4 varchar(255), address5 varchar(255), address6 varchar(255),
  date_changed datetime, changed_by int, uuid char(38) UNIQUE, address7 varchar(255),
  address8 varchar(255), address9 varchar(255), address10 varchar(255), address11 varchar(255),
  address12 varchar(255), address13 varchar(255), address14 varchar(255), address15 varchar(255),
  PRIMARY KEY (person_address_id), FOREIGN KEY (person_id) REFERENCES person (person_id),
  FOREIGN KEY (creator) REFERENCES users (user_id));
CREATE TABLE person_attribute_type (
  person_attribute_type_id int NOT NULL, name varchar(50), description text, format varchar(50),
  foreign_key int, searchable boolean, creator int, date_created datetime, changed_by int,
  date_changed datetime, retired boolean, retired_by int, date_retired datetime,
  retire_reason varchar(255), edit_privilege varchar(255), sort_weight double,
  uuid char(38) UNIQUE, PRIMARY KEY (person_attribute_type_id),
  FOREIGN KEY (creator) REFERENCES users (user_id));
CREATE TABLE person_attribute (
  person_attribute_id int NOT NULL, person_id int, value varchar(50),
  person_attribute_type_id int, creator int, date_created datetime, changed_by int,
  date_changed datetime, voided boolean, voided_by int, date_voided datetime,
  void_reason varchar(255), uuid char(38) UNIQUE, PRIMARY KEY (person_attribute_id),
  FOREIGN KEY (person_id) REFERENCES person (person_id),
  FOREIGN KEY (person_attribute_type_id)
    REFERENCES person_attribute_type (person_attribute_type_id));
CREATE TABLE patient_identifier_type (
  patient_identifier_type_id int NOT NULL, name varchar(50), description text,
  format varchar(255), check_digit boolean, creator int, date_created datetime,
  required boolean, format_description varchar(255), validator varchar(200),
  location_behavior varchar(50), retired boolean, retired_by int, date_retired datetime,
  retire_reason varchar(255), uuid char(38) UNIQUE, uniqueness_behavior varchar(50),
  date_changed datetime, changed_by int, PRIMARY KEY (patient_identifier_type_id),
  FOREIGN KEY (creator) REFERENCES users (user_id));
CREATE TABLE patient_identifier (
  patient_identifier_id int NOT NULL, patient_id int, identifier varchar(50),
  identifier_type int, preferred boolean, location_id int, creator int, date_created datetime,
  date_changed datetime, changed_by int, voided boolean, voided_by int, date_voided datetime,
  void_reason varchar(255), uuid char(38) UNIQUE, patient_program_id int,
  PRIMARY KEY (patient_identifier_id),
  FOREIGN KEY (patient_id) REFERENCES patient (patient_id),
  FOREIGN KEY (identifier_type) REFERENCES patient_identifier_type (patient_identifier_type_id),
  FOREIGN KEY (location_id) REFERENCES location (location_id));
CREATE TABLE visit_type (
  visit_type_id int NOT NULL, name varchar(255), description varchar(1024), creator int,
  date_created datetime, changed_by int, date_changed datetime, retired boolean,
  retired_by int, date_retired datetime, retire_reason varchar(255), uuid char(38) UNIQUE,
  PRIMARY KEY (visit_type_id), FOREIGN KEY (creator) REFERENCES users (user_id));
CREATE TABLE visit (
  visit_id int NOT NULL, patient_id int, visit_type_id int, date_started datetime,
  date_stopped datetime, indication_concept_id int, location_id int, creator int,
  date_created datetime, changed_by int, date_changed datetime, voided boolean, voided_by int,
  date_voided datetime, void_reason varchar(255), uuid char(38) UNIQUE, PRIMARY KEY (visit_id),
  FOREIGN KEY (patient_id) REFERENCES patient (patient_id),
  FOREIGN KEY (visit_type_id) REFERENCES visit_type (visit_type_id),
  FOREIGN KEY (location_id) REFERENCES location (location_id),
  FOREIGN KEY (creator) REFERENCES users (user_id));
CREATE TABLE encounter_type (
  encounter_type_id int NOT NULL, name varchar(50) UNIQUE, description text, creator int,
  date_created datetime, retired boolean, retired_by int, date_retired datetime,
  retire_reason varchar(255), uuid char(38) UNIQUE, edit_privilege varchar(255),
  view_privilege varchar(255), changed_by int, date_changed datetime,
  PRIMARY KEY (encounter_type_id), FOREIGN KEY (creator) REFERENCES users (user_id));
CREATE TABLE encounter (
  encounter_id int NOT NULL, encounter_type int, patient_id int, location_id int, form_id int,
  encounter_datetime datetime, creator int, date_created datetime, voided boolean,
  voided_by int, date_voided datetime, void_reason varchar(255), changed_by int,
  date_changed datetime, visit_id int, uuid char(38) UNIQUE, PRIMARY KEY (encounter_id),
  FOREIGN KEY (encounter_type) REFERENCES encounter_type (encounter_type_id),
  FOREIGN KEY (patient_id) REFERENCES patient (patient_id),
  FOREIGN KEY (location_id) REFERENCES location (location_id),
  FOREIGN KEY (visit_id) REFERENCES visit (visit_id),
  FOREIGN KEY (creator) REFERENCES users (user_id));
